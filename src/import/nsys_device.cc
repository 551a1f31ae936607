// Work of the device: kernels, copies, fills and launches of whole graphs.

#include <algorithm>
#include <limits>

#include "import/nsys_file.h"

namespace foretrace {

namespace {

/// As in the table ENUM_CUDA_MEMCPY_OPER.
struct CopyKind {
  std::string_view text;
  CopyDirection direction;
};

constexpr CopyKind kCopyKinds[] = {
    {"", CopyDirection::none},          {"HtoD", CopyDirection::in},
    {"DtoH", CopyDirection::out},       {"HtoA", CopyDirection::in},
    {"AtoH", CopyDirection::out},       {"AtoA", CopyDirection::on_device},
    {"AtoD", CopyDirection::on_device}, {"DtoA", CopyDirection::on_device},
    {"DtoD", CopyDirection::on_device}, {"HtoH", CopyDirection::on_host},
    {"PtoP", CopyDirection::peer},      {"HtoD", CopyDirection::in},
    {"DtoH", CopyDirection::out},       {"DtoD", CopyDirection::peer},
};

/// As in the table ENUM_CUDA_MEM_KIND.
constexpr std::string_view kMemoryKinds[] = {"Pageable",       "Pinned",  "Device",
                                             "Array",          "Managed", "Device Static",
                                             "Managed Static", "Unknown"};
constexpr std::int64_t kPinned = 1;

std::string_view memory_kind(std::int64_t kind) {
  return kind >= 0 && kind < static_cast<std::int64_t>(std::size(kMemoryKinds))
             ? kMemoryKinds[kind]
             : std::string_view("Unknown");
}

const CopyKind& copy_kind(std::int64_t kind) {
  return kCopyKinds[kind >= 0 && kind < static_cast<std::int64_t>(std::size(kCopyKinds)) ? kind
                                                                                         : 0];
}

std::uint32_t volume(const SqliteRows& row, int first) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t product = 1;
  for (int i = first; i < first + 3; ++i) {
    if (!row.has(i)) return 0;
    product = std::min(kMost, product * static_cast<std::uint64_t>(std::clamp<std::int64_t>(
                                            row.integer(i), 0, static_cast<std::int64_t>(kMost))));
  }
  return static_cast<std::uint32_t>(product);
}

/// What every row of the device's tables has, in front of what only some have.
std::vector<std::string_view> columns_with(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> columns = {"start",       "end",       "globalPid",
                                           "deviceId",    "streamId",  "correlationId",
                                           "graphNodeId", "externalId"};
  columns.insert(columns.end(), more);
  return columns;
}
constexpr int kCommon = 8;

}  // namespace

/// Columns 3 to 7. The start and the rest are the caller's.
void NsysReport::add_device(DeviceRecord& record, const SqliteRows& row) {
  record.stream = stream(row, 3, 4);
  record.correlation = static_cast<std::uint32_t>(row.integer(5));
  record.graph_node = static_cast<std::uint64_t>(row.integer(6));
  record.external = static_cast<std::uint32_t>(row.integer(7));
  if (record.bytes < 0) {
    count(NsysOdd::negative_bytes, "row " + std::to_string(row.number()));
    record.bytes = 0;
  }
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
    record.grid = volume(rows, kCommon + 3);
    record.block = volume(rows, kCommon + 6);
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
    record.bytes = rows.integer(kCommon);
    const CopyKind& kind = copy_kind(rows.integer(kCommon + 1));
    record.direction = kind.direction;
    const bool two_devices = rows.has(kCommon + 4) && rows.has(kCommon + 5) &&
                             rows.integer(kCommon + 4) != rows.integer(kCommon + 5);
    if (record.direction == CopyDirection::on_device && two_devices)
      record.direction = CopyDirection::peer;
    const int host_side = record.direction == CopyDirection::out ? kCommon + 3 : kCommon + 2;
    record.pinned_host = rows.integer(host_side, 0) == kPinned;
    std::string name = "Memcpy";
    if (!kind.text.empty()) (name += ' ') += kind.text;
    if (rows.has(kCommon + 2) && rows.has(kCommon + 3)) {
      name += " (" + std::string(memory_kind(rows.integer(kCommon + 2))) + " -> " +
              std::string(memory_kind(rows.integer(kCommon + 3))) + ")";
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
    record.bytes = rows.integer(kCommon);
    std::string name = "Memset";
    if (rows.has(kCommon + 1))
      name += " (" + std::string(memory_kind(rows.integer(kCommon + 1))) + ")";
    record.name = trace_.names.intern(name);
    add_device(record, rows);
  }
}

/// A report of whole graphs has one row for a launch and none for the kernels in it.
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
