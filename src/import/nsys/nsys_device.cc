// Reads the work of the device: kernels, copies, fills and launches of whole graphs.

#include <fmt/core.h>

#include "import/common/cuda_words.h"
#include "import/nsys/nsys_readers.h"

namespace foretrace {

namespace {

/// Converts a number of ENUM_CUDA_MEM_KIND, which has "unknown" last, to CUPTI's, which has it
/// first.
std::int64_t memory_of(const SqliteRows& row, int column) {
  const std::int64_t kind = row.integer(column, -1);
  return kind < 7 ? kind + 1 : 0;
}

std::string memory_text(const SqliteRows& row, int column) {
  return std::string(memory_kind(memory_of(row, column)));
}

LaunchShapes::Sizes sizes_at(const SqliteRows& row, int first) {
  if (!row.has(first) || !row.has(first + 1) || !row.has(first + 2)) return {};
  return {row.integer(first), row.integer(first + 1), row.integer(first + 2)};
}

/// The columns that every table of device rows has, followed by `more`.
std::vector<std::string_view> columns_with(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> columns = {"start",       "end",        "globalPid",
                                           "deviceId",    "streamId",   "correlationId",
                                           "graphNodeId", "externalId", "contextId"};
  columns.insert(columns.end(), more);
  return columns;
}
constexpr int kCommon = 9;

/// Completes the record from columns 3 to 8 and adds it. The caller has read the other columns.
void add_device(NsysTables& tables, const SqliteRows& row, DeviceRecord& record) {
  record.stream = tables.stream(row, 3, 4);
  record.correlation = static_cast<std::uint32_t>(row.integer(5));
  record.graph_node = static_cast<std::uint64_t>(row.integer(6));
  record.external = static_cast<std::uint32_t>(row.integer(7));
  if (row.has(8)) tables.devices_of_contexts.try_emplace(row.integer(8), row.integer(3));
  tables.trace.devices.push_back(record);
}

void read_kernels(NsysTables& tables) {
  SqliteRows rows(
      tables.file, "CUPTI_ACTIVITY_KIND_KERNEL",
      columns_with({"demangledName", "shortName", "mangledName", "gridX", "gridY", "gridZ",
                    "blockX", "blockY", "blockZ", "collectiveId", "registersPerThread",
                    "staticSharedMemory", "dynamicSharedMemory"}));
  for (DeviceRecord record; tables.next(rows, record);) {
    for (int column = kCommon; column < kCommon + 3 && record.name == NameId{}; ++column)
      record.name = tables.strings.name(rows.integer(column, -1));
    if (record.name == NameId{}) {
      tables.count(NsysOddity::no_name, "kernel " + std::to_string(rows.number()));
      record.name = tables.trace.names.intern("(unnamed kernel)");
    }
    LaunchShape rest;
    rest.registers = to_uint32(rows.integer(kCommon + 10));
    rest.static_shared = to_uint32(rows.integer(kCommon + 11));
    rest.dynamic_shared = to_uint32(rows.integer(kCommon + 12));
    tables.launches.set(record, sizes_at(rows, kCommon + 3), sizes_at(rows, kCommon + 6), rest);
    const std::int64_t collective = rows.integer(kCommon + 9, -1);
    if (collective >= 0 && collective < static_cast<std::int64_t>(tables.trace.collectives.size()))
      record.details = static_cast<std::uint32_t>(collective);
    add_device(tables, rows, record);
  }
}

void read_copies(NsysTables& tables) {
  SqliteRows rows(
      tables.file, "CUPTI_ACTIVITY_KIND_MEMCPY",
      columns_with({"bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId"}));
  for (DeviceRecord record; tables.next(rows, record);) {
    record.kind = DeviceKind::copy;
    record.bytes = tables.take_bytes(rows, kCommon, "row ");
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
      name += fmt::format(" ({} -> {})", memory_text(rows, kCommon + 2),
                          memory_text(rows, kCommon + 3));
    }
    record.name = tables.trace.names.intern(name);
    add_device(tables, rows, record);
  }
}

void read_fills(NsysTables& tables) {
  SqliteRows rows(tables.file, "CUPTI_ACTIVITY_KIND_MEMSET", columns_with({"bytes", "memKind"}));
  for (DeviceRecord record; tables.next(rows, record);) {
    record.kind = DeviceKind::fill;
    record.bytes = tables.take_bytes(rows, kCommon, "row ");
    std::string name = "Memset";
    if (rows.has(kCommon + 1)) name += fmt::format(" ({})", memory_text(rows, kCommon + 1));
    record.name = tables.trace.names.intern(name);
    add_device(tables, rows, record);
  }
}

/// Reads launches of whole graphs. If they were recorded, the report has one row for each launch
/// and none for its kernels.
void read_graphs(NsysTables& tables) {
  SqliteRows rows(tables.file, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                  columns_with({"graphId", "graphExecId"}));
  std::int64_t graphs = 0;
  for (DeviceRecord record; tables.next(rows, record);) {
    const bool executable = rows.has(kCommon + 1);
    record.name = tables.trace.names.intern(
        "CUDA graph " + std::to_string(rows.integer(executable ? kCommon + 1 : kCommon)));
    ++graphs;
    add_device(tables, rows, record);
  }
  if (graphs == 0) return;
  tables.trace.notes.add(
      Severity::info,
      "launches of whole CUDA graphs, whose kernels were not recorded one by one "
      "(nsys profile --cuda-graph-trace=node records them)",
      {}, graphs);
}

}  // namespace

void read_nsys_device_work(NsysTables& tables) {
  read_kernels(tables);
  read_copies(tables);
  read_fills(tables);
  read_graphs(tables);
}

void read_nsys_collectives(NsysTables& tables) {
  SqliteRows rows(tables.file, "FORETRACE_COLLECTIVES",
                  {"collective", "dtype", "groupName", "ranks", "inElements", "outElements",
                   "groupSize", "sequence"});
  while (rows.next()) {
    tables.trace.collectives.push_back({.collective = tables.strings.intern(rows.text(0)),
                                        .dtype = tables.strings.intern(rows.text(1)),
                                        .group = tables.strings.intern(rows.text(2)),
                                        .ranks = tables.strings.intern(rows.text(3)),
                                        .in_elements = rows.integer(4),
                                        .out_elements = rows.integer(5),
                                        .group_size = static_cast<std::int32_t>(rows.integer(6)),
                                        .sequence = rows.integer(7, -1)});
  }
}

}  // namespace foretrace
