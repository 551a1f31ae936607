// Waits between streams that calls establish. Sync records say exactly what a stream waited for.

#include <algorithm>
#include <limits>
#include <optional>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

/// Start of the call with this correlation, or kUnknown.
std::int64_t call_start(const Records& records, std::uint32_t correlation) {
  const auto found = records.call_of_correlation.find(correlation);
  return correlation == 0 || found == records.call_of_correlation.end()
             ? kUnknown
             : records.trace.hosts[found->second].start_ns;
}

/// Returns the wait in `record`. If `any_exact`, events of this recording are known, so an unknown
/// event is from before it.
std::optional<EventWait> recorded_wait(const Records& records, const SyncRecord& record,
                                       bool any_exact) {
  if (record.kind != SyncKind::stream_wait_event || record.stream == kNone) return {};
  if (record.wait_on_stream == kNone || record.wait_on_stream == record.stream) return {};
  const std::int64_t waited = call_start(records, record.correlation);
  if (waited == kUnknown) return {};
  const std::int64_t recorded = call_start(records, record.wait_on_correlation);
  const bool exact = recorded != kUnknown;
  if (!exact && any_exact) return {};
  const std::uint32_t before =
      last_launched_before(records, record.wait_on_stream, exact ? recorded : waited);
  const auto [begin, end] = records.streams[record.stream];
  const std::uint32_t last = last_launched_before(records, record.stream, waited);
  const std::size_t after = last == kNone ? begin : last + 1;
  if (before == kNone || after >= end) return {};
  if (records.events[before].finish > records.events[after].start + records.tolerance) return {};
  return EventWait{static_cast<std::uint32_t>(after), before,
                   exact ? Provenance::measured : Provenance::inferred};
}

EventWaits recorded_waits(const Records& records) {
  const std::vector<SyncRecord>& syncs = records.trace.syncs;
  const bool any_exact = std::any_of(syncs.begin(), syncs.end(), [&](const SyncRecord& sync) {
    return sync.kind == SyncKind::stream_wait_event &&
           call_start(records, sync.wait_on_correlation) != kUnknown;
  });
  EventWaits waits;
  for (const SyncRecord& sync : syncs) {
    if (const auto wait = recorded_wait(records, sync, any_exact)) waits.push_back(*wait);
  }
  return waits;
}

}  // namespace

std::uint32_t last_launched_before(const Records& records, std::size_t stream, std::int64_t time) {
  const auto [begin, end] = records.streams[stream];
  const auto times = records.launch_times.begin();
  const auto behind = std::lower_bound(times + static_cast<std::ptrdiff_t>(begin),
                                       times + static_cast<std::ptrdiff_t>(end), time) -
                      times;
  return behind == static_cast<std::ptrdiff_t>(begin) ? kNone
                                                      : static_cast<std::uint32_t>(behind - 1);
}

std::uint32_t latest_done(const Records& records, std::int64_t start, std::int64_t finish) {
  std::uint32_t best = kNone;
  for (std::size_t stream = 0; stream < records.streams.size(); ++stream) {
    const std::uint32_t event = last_launched_before(records, stream, start);
    if (event == kNone) continue;
    const std::int64_t done = records.events[event].finish;
    if (done <= start || done > finish + records.tolerance) continue;
    if (best == kNone || done > records.events[best].finish) best = event;
  }
  return best;
}

bool leaves_room(const Records& records, const DeviceEvent& event) {
  if (event.kind != TaskKind::kernel) return true;
  const std::uint32_t blocks = records.trace.devices[event.record].grid;
  for (const Device& device : records.trace.properties) {
    if (device.ordinal != records.trace.streams[event.stream].device) continue;
    return blocks > 0 && static_cast<std::int64_t>(blocks) < device.multiprocessors;
  }
  return false;
}

void sort_waits(EventWaits& waits) { std::stable_sort(waits.begin(), waits.end()); }

EventWaits find_stream_waits(const Records& records, const TypicalDelays& typical, Notes& notes,
                             Assumptions& assumptions) {
  EventWaits waits = recorded_waits(records);
  find_default_stream_waits(records, typical, waits, notes, assumptions);
  find_repeated_waits(records, typical, waits);
  sort_waits(waits);
  return waits;
}

}  // namespace foretrace::infer_detail
