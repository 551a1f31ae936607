// Writes kernels, copies and fills.

#include "export/nsys/nsys_report.h"
#include "trace/launch_shape.h"

namespace foretrace {

namespace {

constexpr std::int64_t kRegular = 1;  ///< Number in ENUM_CUDA_KERNEL_LAUNCH_TYPE.

/// Numbers of ENUM_CUDA_MEMCPY_OPER, by direction.
constexpr std::int64_t kCopyKinds[] = {0, 1, 2, 8, 10, 9};

/// Names of ENUM_CUDA_MEM_KIND.
constexpr std::string_view kMemoryKinds[] = {"Pageable",       "Pinned",  "Device",
                                             "Array",          "Managed", "Device Static",
                                             "Managed Static", "Unknown"};
constexpr std::int64_t kPageable = 0;
constexpr std::int64_t kPinned = 1;
constexpr std::int64_t kDevice = 2;

std::optional<std::int64_t> memory_kind(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kMemoryKinds); ++i) {
    if (text == kMemoryKinds[i]) return static_cast<std::int64_t>(i);
  }
  return std::nullopt;
}

struct CopyMemoryKinds {
  std::optional<std::int64_t> from, to;
};

/// The kinds of memory at both ends of a copy, from a name such as "Memcpy HtoD (Pageable ->
/// Device)" or else from the direction.
CopyMemoryKinds memory_kinds_of(const DeviceRecord& record, std::string_view name) {
  const std::size_t open = name.find('(');
  const std::size_t arrow = name.find(" -> ");
  const std::size_t close = name.find(')');
  if (open < arrow && arrow < close && close != std::string_view::npos) {
    const CopyMemoryKinds kinds{memory_kind(name.substr(open + 1, arrow - open - 1)),
                                memory_kind(name.substr(arrow + 4, close - arrow - 4))};
    if (kinds.from && kinds.to) return kinds;
  }
  const std::int64_t host = record.pinned_host ? kPinned : kPageable;
  switch (record.direction) {
    case CopyDirection::in:
      return {host, kDevice};
    case CopyDirection::out:
      return {kDevice, host};
    case CopyDirection::on_host:
      return {host, host};
    case CopyDirection::on_device:
    case CopyDirection::peer:
      return {kDevice, kDevice};
    case CopyDirection::none:
      break;
  }
  return {};
}

/// The name of a kernel without return type, namespace and arguments: "gemm" for "void
/// cutlass::gemm<float, 2>(int)".
std::string_view short_name(std::string_view name) {
  const std::size_t end = name.find_first_of("<(");
  // A name that begins with a bracket is not the name of a function.
  if (end == 0 || end == std::string_view::npos) return name;
  name = name.substr(0, end);
  const std::size_t begin = name.find_last_of(": ");
  return begin == std::string_view::npos || begin + 1 == name.size() ? name
                                                                     : name.substr(begin + 1);
}

std::optional<std::int64_t> unless_zero(std::uint64_t number) {
  return number == 0 ? std::nullopt : std::optional(static_cast<std::int64_t>(number));
}

}  // namespace

void NsysExport::write_kernels() {
  SqliteInsert rows(
      writer_, "CUPTI_ACTIVITY_KIND_KERNEL",
      "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
      "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "
      "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, "
      "shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, "
      "registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
      "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, "
      "blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, "
      "dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, "
      "localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, "
      "graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, externalId INTEGER, "
      "collectiveId INTEGER");
  std::vector<std::int64_t> short_names(trace_.names.size(), -1);
  std::int64_t number = 0;
  const std::int64_t zero = 0;
  for (const DeviceRecord& record : trace_.devices) {
    if (record.kind != DeviceKind::kernel) continue;
    std::int64_t& shortened = short_names[static_cast<std::size_t>(record.name)];
    if (shortened < 0) shortened = texts_.id(short_name(trace_.names[record.name]));
    const LaunchShape shape = launch_shape(trace_, record);
    const std::optional<std::int64_t> collective =
        record.details == kNone ? std::nullopt : std::optional(std::int64_t{record.details});
    rows.add({record.start_ns,
              record.start_ns + record.duration_ns,
              device_of(record),
              kContext,
              std::nullopt,
              stream_of(record),
              unless_zero(record.correlation),
              threads_.global_pid(),
              texts_.id(record.name),
              shortened,
              std::nullopt,
              kRegular,
              std::nullopt,
              std::int64_t{shape.registers},
              std::int64_t{shape.grid_x},
              std::int64_t{shape.grid_y},
              std::int64_t{shape.grid_z},
              std::int64_t{shape.block_x},
              std::int64_t{shape.block_y},
              std::int64_t{shape.block_z},
              std::int64_t{shape.static_shared},
              std::int64_t{shape.dynamic_shared},
              zero,
              zero,
              ++number,
              std::nullopt,
              unless_zero(record.graph_node),
              std::nullopt,
              std::int64_t{record.external},
              collective});
  }
}

void NsysExport::write_copies() {
  SqliteInsert rows(
      writer_, "CUPTI_ACTIVITY_KIND_MEMCPY",
      "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
      "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "
      "correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, "
      "copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER, "
      "srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, "
      "migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER, externalId INTEGER");
  for (const DeviceRecord& record : trace_.devices) {
    if (record.kind != DeviceKind::copy) continue;
    const CopyMemoryKinds kinds = memory_kinds_of(record, trace_.names[record.name]);
    const auto none = std::nullopt;
    rows.add({record.start_ns,
              record.start_ns + record.duration_ns,
              device_of(record),
              kContext,
              none,
              stream_of(record),
              unless_zero(record.correlation),
              threads_.global_pid(),
              record.bytes,
              kCopyKinds[static_cast<std::size_t>(record.direction)],
              none,
              kinds.from,
              kinds.to,
              none,
              none,
              none,
              none,
              none,
              unless_zero(record.graph_node),
              none,
              std::int64_t{record.external}});
  }
}

void NsysExport::write_fills() {
  SqliteInsert rows(
      writer_, "CUPTI_ACTIVITY_KIND_MEMSET",
      "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
      "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "
      "correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL, "
      "graphNodeId INTEGER, memKind INTEGER, externalId INTEGER");
  for (const DeviceRecord& record : trace_.devices) {
    if (record.kind != DeviceKind::fill) continue;
    const std::string_view name = trace_.names[record.name];
    const std::size_t open = name.find('(');
    const std::size_t close = name.find(')');
    const bool has_kind = open < close && close != std::string_view::npos;
    const auto kind =
        has_kind ? memory_kind(name.substr(open + 1, close - open - 1)) : std::nullopt;
    rows.add({record.start_ns, record.start_ns + record.duration_ns, device_of(record), kContext,
              std::nullopt, stream_of(record), unless_zero(record.correlation),
              threads_.global_pid(), std::int64_t{0}, record.bytes, unless_zero(record.graph_node),
              kind, std::int64_t{record.external}});
  }
}

void NsysExport::write_collectives() {
  if (trace_.collectives.empty()) return;
  SqliteInsert rows(writer_, "FORETRACE_COLLECTIVES",
                    "collective TEXT, dtype TEXT, groupName TEXT, ranks TEXT, inElements INTEGER, "
                    "outElements INTEGER, groupSize INTEGER, sequence INTEGER");
  for (const CollectiveDetails& details : trace_.collectives) {
    rows.add({trace_.names[details.collective], trace_.names[details.dtype],
              trace_.names[details.group], trace_.names[details.ranks], details.in_elements,
              details.out_elements, std::int64_t{details.group_size}, details.sequence});
  }
}

}  // namespace foretrace
