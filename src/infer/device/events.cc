// Waits between streams. Sync records say exactly what a stream waited for. If the profiler did not
// record them, a start that neither its launch nor its lane explains is searched for its cause
// among the other streams of the device:
//
//     event wait    an activity that finished just before:             ====|   ->   |====
//     device full   a kernel of many blocks that ran all the while; its last blocks leave room as
//     they end

#include <algorithm>
#include <limits>
#include <optional>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// In ns, from the end of the awaited activity to the start of the waiting one; 60us were seen on
/// busy devices.
constexpr std::int64_t kLongestEventLag = 100'000;

/// Multiprocessors of a device that the trace does not describe: as few as small devices have, so
/// that no full device is overlooked. Chosen.
constexpr std::uint32_t kFewMultiprocessors = 16;

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

/// When the call with this correlation began.
std::int64_t call_start(const Records& records, std::uint32_t correlation) {
  const auto found = records.call_of_correlation.find(correlation);
  return correlation == 0 || found == records.call_of_correlation.end()
             ? kUnknown
             : records.trace.hosts[found->second].start_ns;
}

/// The wait in `record`. With `any_exact`, events of this recording are known, and an unknown one
/// is from before it.
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

EventWaits find_stream_waits(const Records& records, const Typical& typical, Notes& notes,
                             Assumptions& assumptions) {
  EventWaits waits = recorded_waits(records);
  find_default_stream_waits(records, typical, waits, notes, assumptions);
  find_repeated_waits(records, typical, waits);
  sort_waits(waits);
  return waits;
}

WaitFinder::WaitFinder(const Records& records, std::int64_t launch_fence)
    : records_(records), launch_fence_(launch_fence), by_finish_(records.streams.size()) {
  for (std::size_t stream = 0; stream < records.streams.size(); ++stream) {
    const auto [begin, end] = records.streams[stream];
    std::vector<std::uint32_t>& events = by_finish_[stream];
    for (std::size_t i = begin; i < end; ++i) events.push_back(static_cast<std::uint32_t>(i));
    std::stable_sort(events.begin(), events.end(), [&](std::uint32_t a, std::uint32_t b) {
      return records.events[a].finish < records.events[b].finish;
    });
  }
}

bool WaitFinder::fills_device(const DeviceEvent& event) const {
  if (event.kind != TaskKind::kernel) return false;
  const std::uint32_t blocks = records_.trace.devices[event.record].grid;
  std::uint32_t places = kFewMultiprocessors;
  for (const Device& device : records_.trace.properties) {
    if (device.ordinal != records_.trace.streams[event.stream].device) continue;
    if (device.multiprocessors > 0) places = static_cast<std::uint32_t>(device.multiprocessors);
  }
  return blocks == 0 || blocks >= places;
}

Explanation WaitFinder::explain(std::uint32_t event, std::int64_t known) const {
  const DeviceEvent& waiting = records_.events[event];
  const std::int32_t device = records_.trace.streams[waiting.stream].device;
  Explanation finished, full;
  std::int64_t latest = known;  // The finish of the last one that finished before.
  std::int64_t least_left = std::numeric_limits<std::int64_t>::max();
  std::int64_t full_since = 0;
  for (std::size_t stream = 0; stream < by_finish_.size(); ++stream) {
    if (stream == waiting.stream || records_.trace.streams[stream].device != device) continue;
    const std::vector<std::uint32_t>& events = by_finish_[stream];
    const auto behind = std::upper_bound(
        events.begin(), events.end(), waiting.start + records_.tolerance,
        [&](std::int64_t t, std::uint32_t i) { return t < records_.events[i].finish; });
    if (behind != events.begin()) {
      const DeviceEvent& before = records_.events[*std::prev(behind)];
      const bool earlier =
          std::pair(before.start, *std::prev(behind)) < std::pair(waiting.start, event);
      if (earlier && before.finish > latest) {
        latest = before.finish;
        finished = {*std::prev(behind), std::max<std::int64_t>(waiting.start - latest, 0),
                    Rule::event_wait};
      }
    }
    if (behind == events.end()) continue;
    const DeviceEvent& running = records_.events[*behind];
    const std::int64_t left = running.finish - waiting.start;
    if (running.start < waiting.start && left < least_left && fills_device(running)) {
      least_left = left;
      full_since = running.start;
      full = {*behind, -left, Rule::device_full};
    }
  }
  if (finished.before != kNone && finished.lag <= kLongestEventLag) return finished;
  // Full from when it could have started at the latest.
  if (full.before != kNone && full_since <= latest + launch_fence_) return full;
  return {};
}

}  // namespace foretrace::infer_detail
