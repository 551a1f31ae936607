// Writes waits, the event records that they wait for, and allocations and frees of memory.

#include <tuple>

#include "export/nsys/nsys_report.h"

namespace foretrace {

namespace {

constexpr std::int64_t kInvalid = 0xffffffff;

/// The number in ENUM_CUPTI_SYNC_TYPE.
std::int64_t type_of(SyncKind kind) {
  switch (kind) {
    case SyncKind::event:
      return 1;
    case SyncKind::stream_wait_event:
      return 2;
    case SyncKind::stream:
      return 3;
    case SyncKind::context:
      return 4;
    case SyncKind::unknown:
      break;
  }
  return 0;
}

bool is_of_event(const SyncRecord& record) {
  return record.kind == SyncKind::event || record.kind == SyncKind::stream_wait_event;
}

bool is_recorded(const MemoryRecord& record) {
  return record.action == MemoryAction::block || record.action == MemoryAction::segment_alloc ||
         record.action == MemoryAction::segment_free;
}

}  // namespace

void NsysExport::write_waits() {
  SqliteInsert waits(writer_, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                     "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
                     "contextId INTEGER NOT NULL, greenContextId INTEGER, "
                     "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
                     "deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, "
                     "eventId INTEGER NOT NULL, eventSyncId INTEGER");
  SqliteInsert events(writer_, "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                      "timestamp INTEGER, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
                      "greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
                      "globalPid INTEGER, eventId INTEGER NOT NULL, eventSyncId INTEGER");
  const auto device_of_stream = [&](std::uint32_t stream) {
    return stream == kNone ? std::int64_t{0} : std::int64_t{trace_.streams[stream].device};
  };
  const auto id_of_stream = [&](std::uint32_t stream) {
    return stream == kNone ? kInvalid : trace_.streams[stream].id;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::int64_t> recorded;
  for (const SyncRecord& record : trace_.syncs) {
    std::optional<std::int64_t> sync;
    if (is_of_event(record)) {
      const auto [known, added] =
          recorded.try_emplace({record.event, record.wait_on_stream, record.wait_on_correlation},
                               static_cast<std::int64_t>(recorded.size()) + 1);
      sync = known->second;
      // If the event's stream and call are unknown, it was recorded before profiling began and has
      // no row.
      if (added && (record.wait_on_stream != kNone || record.wait_on_correlation != 0)) {
        events.add({std::int64_t{0}, device_of_stream(record.wait_on_stream), kContext,
                    std::nullopt, id_of_stream(record.wait_on_stream),
                    std::int64_t{record.wait_on_correlation}, threads_.global_pid(),
                    std::int64_t{record.event}, sync});
      }
    }
    waits.add({record.start_ns, record.start_ns + record.duration_ns,
               device_of_stream(record.stream), kContext, std::nullopt, id_of_stream(record.stream),
               std::int64_t{record.correlation}, threads_.global_pid(), std::nullopt,
               type_of(record.kind), is_of_event(record) ? std::int64_t{record.event} : kInvalid,
               sync});
  }
}

void NsysExport::write_memory() {
  if (trace_.memory.empty()) return;
  constexpr std::int64_t kPageable = 0;
  constexpr std::int64_t kDevice = 2;
  SqliteInsert rows(
      writer_, "CUDA_GPU_MEMORY_USAGE_EVENTS",
      "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
      "contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, "
      "bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, "
      "name TEXT, correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER, "
      "localMemoryPoolReleaseThreshold INTEGER, localMemoryPoolSize INTEGER, "
      "localMemoryPoolUtilizedSize INTEGER, importedMemoryPoolAddress INTEGER, "
      "importedMemoryPoolProcessId INTEGER, globalTid INTEGER");
  const auto if_known = [](std::int64_t total) {
    return total < 0 ? std::nullopt : std::optional(total);
  };
  for (const MemoryRecord& record : trace_.memory) {
    if (!is_recorded(record)) continue;
    const auto none = std::nullopt;
    // The blocks of a caching allocator are written like blocks of a driver's pool.
    const bool pooled = record.action == MemoryAction::block;
    const std::optional<std::int64_t> stream =
        record.stream == kNone ? none : std::optional(trace_.streams[record.stream].id);
    rows.add({record.time_ns, threads_.global_pid(),
              record.device < 0 ? kInvalid : std::int64_t{record.device}, kContext,
              static_cast<std::int64_t>(record.address), std::int64_t{0},
              record.bytes < 0 ? -record.bytes : record.bytes,
              record.device < 0 ? kPageable : kDevice, std::int64_t{record.bytes < 0}, none, none,
              stream, pooled ? Cell(std::int64_t{0}) : Cell(none), none,
              if_known(record.total_reserved), if_known(record.total_allocated), none, none,
              threads_.global_tid(record.thread)});
  }
}

}  // namespace foretrace
