// Work of the device: kernels, copies, fills and launches of whole graphs.

#include "import/common/cuda_words.h"
#include "import/nsys/nsys_file.h"

namespace foretrace {

namespace {

/// ENUM_CUDA_MEM_KIND counts from 0, with unknown last; CUPTI's numbers do not.
std::int64_t memory_of(const SqliteRows& row, int column) {
  const std::int64_t kind = row.integer(column, -1);
  return kind < 7 ? kind + 1 : 0;
}

std::string memory_text(const SqliteRows& row, int column) {
  return std::string(memory_kind(memory_of(row, column)));
}

std::uint32_t volume_at(const SqliteRows& row, int first) {
  if (!row.has(first) || !row.has(first + 1) || !row.has(first + 2)) return 0;
  return volume(row.integer(first), row.integer(first + 1), row.integer(first + 2));
}

/// Columns that every table of device rows has, before those that only some have.
std::vector<std::string_view> columns_with(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> columns = {"start",       "end",       "globalPid",
                                           "deviceId",    "streamId",  "correlationId",
                                           "graphNodeId", "externalId"};
  columns.insert(columns.end(), more);
  return columns;
}
constexpr int kCommon = 8;

}  // namespace

/// Reads columns 3 to 7; the caller reads the start and the rest.
void NsysReport::add_device(DeviceRecord& record, const SqliteRows& row) {
  record.stream = stream(row, 3, 4);
  record.correlation = static_cast<std::uint32_t>(row.integer(5));
  record.graph_node = static_cast<std::uint64_t>(row.integer(6));
  record.external = static_cast<std::uint32_t>(row.integer(7));
  trace_.devices.push_back(record);
}

void NsysReport::read_kernels() {
  SqliteRows rows(file_, "CUPTI_ACTIVITY_KIND_KERNEL",
                  columns_with({"demangledName", "shortName", "mangledName", "gridX", "gridY",
                                "gridZ", "blockX", "blockY", "blockZ", "collectiveId"}));
  while (rows.next()) {
    Times times;
    if (!is_mine(rows, 2) || !take_times(rows, 0, 1, times)) continue;
    DeviceRecord record;
    record.start_ns = times.start;
    record.duration_ns = times.duration;
    for (int column = kCommon; column < kCommon + 3 && record.name == NameId{}; ++column)
      record.name = strings_.name(rows.integer(column, -1));
    if (record.name == NameId{}) {
      count(NsysOdd::no_name, "kernel " + std::to_string(rows.number()));
      record.name = trace_.names.intern("(unnamed kernel)");
    }
    record.grid = volume_at(rows, kCommon + 3);
    record.block = volume_at(rows, kCommon + 6);
    const std::int64_t collective = rows.integer(kCommon + 9, -1);
    if (collective >= 0 && collective < static_cast<std::int64_t>(trace_.collectives.size()))
      record.details = static_cast<std::uint32_t>(collective);
    add_device(record, rows);
  }
}

void NsysReport::read_copies() {
  SqliteRows rows(
      file_, "CUPTI_ACTIVITY_KIND_MEMCPY",
      columns_with({"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"}));
  while (rows.next()) {
    Times times;
    if (!is_mine(rows, 2) || !take_times(rows, 0, 1, times)) continue;
    DeviceRecord record;
    record.start_ns = times.start;
    record.duration_ns = times.duration;
    record.kind = DeviceKind::copy;
    record.bytes = take_bytes(rows, kCommon, "row ");
    const CopyKind& kind = copy_kind(rows.integer(kCommon + 1));
    record.direction = kind.direction;
    const bool two_devices = rows.has(kCommon + 4) && rows.has(kCommon + 5) &&
                             rows.integer(kCommon + 4) != rows.integer(kCommon + 5);
    if (record.direction == CopyDirection::on_device && two_devices)
      record.direction = CopyDirection::peer;
    const int host_side = record.direction == CopyDirection::out ? kCommon + 3 : kCommon + 2;
    record.pinned_host = memory_of(rows, host_side) == kPinnedMemory;
    std::string name = "Memcpy";
    if (!kind.text.empty()) (name += ' ') += kind.text;
    if (rows.has(kCommon + 2) && rows.has(kCommon + 3)) {
      name += " (" + memory_text(rows, kCommon + 2) + " -> " + memory_text(rows, kCommon + 3) + ")";
    }
    record.name = trace_.names.intern(name);
    add_device(record, rows);
  }
}

void NsysReport::read_fills() {
  SqliteRows rows(file_, "CUPTI_ACTIVITY_KIND_MEMSET", columns_with({"bytes", "memKind"}));
  while (rows.next()) {
    Times times;
    if (!is_mine(rows, 2) || !take_times(rows, 0, 1, times)) continue;
    DeviceRecord record;
    record.start_ns = times.start;
    record.duration_ns = times.duration;
    record.kind = DeviceKind::fill;
    record.bytes = take_bytes(rows, kCommon, "row ");
    std::string name = "Memset";
    if (rows.has(kCommon + 1)) name += " (" + memory_text(rows, kCommon + 1) + ")";
    record.name = trace_.names.intern(name);
    add_device(record, rows);
  }
}

/// A report of whole graphs has one row per launch and none for the kernels in it.
void NsysReport::read_graphs() {
  SqliteRows rows(file_, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                  columns_with({"graphId", "graphExecId"}));
  std::int64_t graphs = 0;
  while (rows.next()) {
    Times times;
    if (!is_mine(rows, 2) || !take_times(rows, 0, 1, times)) continue;
    DeviceRecord record;
    record.start_ns = times.start;
    record.duration_ns = times.duration;
    const bool executable = rows.has(kCommon + 1);
    record.name = trace_.names.intern(
        "CUDA graph " + std::to_string(rows.integer(executable ? kCommon + 1 : kCommon)));
    ++graphs;
    add_device(record, rows);
  }
  if (graphs == 0) return;
  trace_.notes.add(Severity::info,
                   "launches of whole CUDA graphs, whose kernels were not recorded one by one "
                   "(nsys profile --cuda-graph-trace=node records them)",
                   {}, graphs);
}

void NsysReport::read_collectives() {
  SqliteRows rows(file_, "FORETRACE_COLLECTIVES",
                  {"collective", "dtype", "groupName", "ranks", "inElements", "outElements",
                   "groupSize", "sequence"});
  while (rows.next()) {
    trace_.collectives.push_back({.collective = strings_.intern(rows.text(0)),
                                  .dtype = strings_.intern(rows.text(1)),
                                  .group = strings_.intern(rows.text(2)),
                                  .ranks = strings_.intern(rows.text(3)),
                                  .in_elements = rows.integer(4),
                                  .out_elements = rows.integer(5),
                                  .group_size = static_cast<std::int32_t>(rows.integer(6)),
                                  .sequence = rows.integer(7, -1)});
  }
}

}  // namespace foretrace
