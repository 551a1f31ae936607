// Reads waits. The row of a wait names an event; the rows of recorded events tell on which stream
// and behind which call it was recorded. Together they give the place on a stream that the wait
// depends on:
//
//     cudaEventRecord(e, 20)     CUDA_EVENT       event 5, stream 20, correlation 100, sync id 9
//     cudaStreamWaitEvent(7, e)  SYNCHRONIZATION  event 5, stream 7, correlation 101, sync id 9
//
// Old versions lack sync ids. Then the wait is for the latest record of that event before it.

#include <algorithm>
#include <fmt/core.h>
#include <tuple>

#include "base/contains.h"
#include "import/nsys/nsys_readers.h"
#include "trace/wait_call.h"

namespace foretrace {

namespace {

constexpr std::int64_t kInvalid = 0xffffffff;  ///< Marks a stream or event that does not apply.

/// The columns of the query below.
struct WaitColumn {
  enum : int {
    start,
    end,
    process,
    device,
    stream,
    correlation,
    context,
    event,
    sync_id,
    type,
    old_type
  };
};

bool is_valid(const SqliteRows& row, int column) {
  return row.has(column) && row.integer(column) != kInvalid && row.integer(column) >= 0;
}

/// The kind of a wait, judged from its ids: each kind lacks the ids that do not apply to it.
SyncKind kind_of_ids(const SqliteRows& row) {
  const bool of_stream = is_valid(row, WaitColumn::stream);
  if (is_valid(row, WaitColumn::event))
    return of_stream ? SyncKind::stream_wait_event : SyncKind::event;
  return of_stream ? SyncKind::stream : SyncKind::context;
}

/// The kind of a wait by the numbers of the table ENUM_CUPTI_SYNC_TYPE.
SyncKind kind_of_type(std::int64_t type) {
  constexpr SyncKind kKinds[] = {SyncKind::unknown, SyncKind::event, SyncKind::stream_wait_event,
                                 SyncKind::stream, SyncKind::context};
  return type > 0 && type < static_cast<std::int64_t>(std::size(kKinds)) ? kKinds[type]
                                                                         : SyncKind::unknown;
}

/// A record of an event on a stream, made by one call of cudaEventRecord.
struct EventRecord {
  std::int64_t context = 0, event = 0, correlation = 0, sync_id = 0, device = 0, stream = 0;
};

class RecordedEvents {
 public:
  explicit RecordedEvents(NsysTables& tables) {
    SqliteRows rows(tables.file, "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                    {"globalPid", "contextId", "eventId", "correlationId", "eventSyncId",
                     "deviceId", "streamId"});
    while (rows.next()) {
      if (!tables.is_mine(rows, 0)) continue;
      events_.push_back({.context = rows.integer(1),
                         .event = rows.integer(2),
                         .correlation = rows.integer(3),
                         .sync_id = rows.integer(4),
                         .device = rows.integer(5),
                         .stream = rows.integer(6, kInvalid)});
    }
    for (const EventRecord& record : events_) {
      if (record.sync_id != 0) synced_events_.push_back(record);
    }
    const auto key = [](const EventRecord& record) {
      return std::tuple(record.context, record.event, record.correlation);
    };
    std::stable_sort(events_.begin(), events_.end(),
                     [&](const EventRecord& a, const EventRecord& b) { return key(a) < key(b); });
    std::stable_sort(
        synced_events_.begin(), synced_events_.end(),
        [](const EventRecord& a, const EventRecord& b) { return a.sync_id < b.sync_id; });
  }

  /// The record that a row of waits depends on, or nullptr if it is not in the report.
  const EventRecord* find(const SqliteRows& row) const {
    const std::int64_t sync = row.integer(WaitColumn::sync_id);
    const auto exact =
        std::lower_bound(synced_events_.begin(), synced_events_.end(), sync,
                         [](const EventRecord& a, std::int64_t id) { return a.sync_id < id; });
    if (exact != synced_events_.end() && exact->sync_id == sync) return &*exact;
    // The event was recorded before profiling began.
    if (sync != 0 && !synced_events_.empty()) return nullptr;
    const std::int64_t in_context = row.integer(WaitColumn::context);
    const std::int64_t wanted = row.integer(WaitColumn::event);
    // Correlation ids increase with time, so the latest record has the largest id below the wait's.
    const auto behind =
        std::lower_bound(events_.begin(), events_.end(),
                         std::tuple(in_context, wanted, row.integer(WaitColumn::correlation)),
                         [](const EventRecord& a, const auto& key) {
                           return std::tuple(a.context, a.event, a.correlation) < key;
                         });
    if (behind == events_.begin()) return nullptr;
    const EventRecord& latest = *std::prev(behind);
    return latest.context == in_context && latest.event == wanted ? &latest : nullptr;
  }

 private:
  std::vector<EventRecord> events_;         ///< Sorted by context, event and correlation.
  std::vector<EventRecord> synced_events_;  ///< Those with a sync id, sorted by it.
};

SyncKind kind_of_call(const NsysCalls& calls, std::uint32_t id, const Names& names) {
  const auto call = calls.find(id);
  if (id == 0 || call == calls.end()) return SyncKind::unknown;
  const std::string_view name = names[call->second.name];
  if (contains(name, "StreamWaitEvent")) return SyncKind::stream_wait_event;
  switch (wait_call(name)) {
    case WaitCall::stream:
      return SyncKind::stream;
    case WaitCall::event:
      return SyncKind::event;
    case WaitCall::device:
      return SyncKind::context;
    default:
      return SyncKind::unknown;
  }
}

/// The kind of a wait. Versions without the column deprecatedSyncType number the types differently
/// from their own table of types; for them, the call and the ids take precedence over the type.
SyncKind sync_kind(const SqliteRows& row, SyncKind called, NsysTables& tables) {
  const SyncKind typed = kind_of_type(row.integer(WaitColumn::type));
  if (row.known(WaitColumn::old_type)) return typed != SyncKind::unknown ? typed : called;
  SyncKind found = called;
  if (found == SyncKind::unknown)
    found =
        row.known(WaitColumn::stream) && row.known(WaitColumn::event) ? kind_of_ids(row) : typed;
  if (row.has(WaitColumn::type) && typed != found) {
    tables.count(NsysOddity::named_otherwise,
                 fmt::format("type {} for a wait of kind {}", row.integer(WaitColumn::type),
                             to_string(found)));
  }
  return found;
}

}  // namespace

void read_nsys_waits(NsysTables& tables, const NsysCalls& calls) {
  const RecordedEvents events(tables);
  SqliteRows rows(tables.file, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                  {"start", "end", "globalPid", "deviceId", "streamId", "correlationId",
                   "contextId", "eventId", "eventSyncId", "syncType", "deprecatedSyncType"});
  for (SyncRecord record; tables.next(rows, record);) {
    record.correlation = static_cast<std::uint32_t>(rows.integer(WaitColumn::correlation));
    record.kind =
        sync_kind(rows, kind_of_call(calls, record.correlation, tables.trace.names), tables);
    if (is_valid(rows, WaitColumn::stream))
      record.stream =
          tables.lanes.stream(tables.device_of_context(rows.integer(WaitColumn::context),
                                                       rows.integer(WaitColumn::device)),
                              rows.integer(WaitColumn::stream));
    const bool of_event =
        record.kind == SyncKind::event || record.kind == SyncKind::stream_wait_event;
    if (of_event && is_valid(rows, WaitColumn::event)) {
      record.event = static_cast<std::uint32_t>(rows.integer(WaitColumn::event));
      if (const EventRecord* made = events.find(rows)) {
        if (made->stream != kInvalid)
          record.wait_on_stream = tables.lanes.stream(
              tables.device_of_context(made->context, made->device), made->stream);
        record.wait_on_correlation = static_cast<std::uint32_t>(made->correlation);
      }
    }
    tables.trace.syncs.push_back(record);
  }
}

}  // namespace foretrace
