// Finds waits between streams if neither events nor streams are recorded, only the calls: a thread
// that makes a stream wait for an event (cudaStreamWaitEvent) next launches work on that stream. It
// is unknown what the event stands for, but the program repeats the same pattern, and sometimes the
// wait binds:
//
//     calls        S   wait  Q        S   wait  Q
//     stream 1   |SSSSSSSSSS|       |SSS|
//     stream 2              |QQ|          |QQ|       the second wait did not bind; it exists
//
// So each kernel that is launched after such a call, identified by name and stream, is assumed to
// wait for the last launch on another stream before the call, if it never began before that was
// done, and if the wait is the only explanation of several of its starts.
//
// A pipeline waits for an older event, because a later batch was launched on the other stream in
// the meantime. If that pattern breaks, the last launch before the last call that records an event
// is tried, then before the one before it, and so on: the order of the calls pairs the two.
//
//     calls      copy 2  record 2   wait   Q 1        copy 3  record 3   wait   Q 2
//     the wait is for the last launch before record 1, and record 2: two records back

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/contains.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// Number of starts that only the wait explains before it is accepted. Chosen.
constexpr std::size_t kEnoughRepeats = 3;

/// Number of calls that record events, back from the wait, that are tried. Chosen: a pipeline has a
/// few batches on their way.
constexpr std::size_t kMaxBack = 4;

/// Name and stream of the waiting work, the stream it waits for, and how many records of events
/// back the awaited work was launched; 0: before the wait.
using WaitKey = std::tuple<NameId, std::uint16_t, std::uint16_t, std::size_t>;

struct WaitTally {
  std::vector<EventWait> waits;
  std::size_t broken = 0;  ///< Starts that violate the wait.
  std::size_t shown = 0;   ///< Starts that only the wait explains.
};

class RepeatedWaits {
 public:
  RepeatedWaits(const Records& records, const TypicalDelays& typical)
      : records_(records),
        typical_(typical),
        calls_(records.trace.threads.size()),
        event_records_(records.trace.threads.size()) {
    for (const HostRecord& record : records.trace.hosts) {
      if (!is_call(record.kind)) continue;
      const std::string_view name = records.name(record);
      if (contains(name, "StreamWaitEvent")) calls_[record.thread].push_back(record.start_ns);
      if (contains(name, "EventRecord")) event_records_[record.thread].push_back(record.start_ns);
    }
    for (std::vector<std::int64_t>& times : calls_) std::sort(times.begin(), times.end());
    for (std::vector<std::int64_t>& times : event_records_) std::sort(times.begin(), times.end());
  }

  void find(std::vector<EventWait>& waits) {
    // Time of the last launch of each thread.
    std::vector<std::int64_t> launched(calls_.size(), 0);
    for (const std::uint32_t i : records_.by_launch) {
      const Call& call = *records_.call_of(records_.events[i]);
      const std::int64_t since = std::exchange(launched[call.thread], call.start);
      const std::vector<std::int64_t>& times = calls_[call.thread];
      const auto behind = std::lower_bound(times.begin(), times.end(), call.start);
      if (behind == times.begin() || *std::prev(behind) <= since) continue;
      const std::int64_t waited = *std::prev(behind);
      note(i, waited, 0);
      const std::vector<std::int64_t>& recorded = event_records_[call.thread];
      const auto end = std::lower_bound(recorded.begin(), recorded.end(), waited);
      const auto known = static_cast<std::size_t>(end - recorded.begin());
      for (std::size_t back = 1; back <= std::min(kMaxBack, known); ++back)
        note(i, *(end - static_cast<std::ptrdiff_t>(back)), back);
    }
    const WaitKey* accepted = nullptr;
    for (const auto& [key, tally] : tallies_) {
      if (tally.broken > 0 || tally.shown < kEnoughRepeats) continue;
      if (accepted && without_back(*accepted) == without_back(key)) continue;
      accepted = &key;
      waits.insert(waits.end(), tally.waits.begin(), tally.waits.end());
    }
  }

 private:
  static WaitKey without_back(WaitKey key) {
    std::get<3>(key) = 0;
    return key;
  }

  /// Notes the work that `after` waits for if it was launched before `waited`.
  void note(std::uint32_t after, std::int64_t waited, std::size_t back) {
    const DeviceEvent& waiting = records_.events[after];
    const std::int32_t device = records_.trace.streams[waiting.stream].device;
    for (std::size_t stream = 0; stream < records_.streams.size(); ++stream) {
      if (stream == waiting.stream || records_.trace.streams[stream].device != device) continue;
      const std::uint32_t before = last_launched_before(records_, stream, waited);
      if (before == kNone) continue;
      const NameId name = records_.trace.devices[waiting.record].name;
      WaitTally& tally =
          tallies_[WaitKey(name, waiting.stream, static_cast<std::uint16_t>(stream), back)];
      if (records_.events[before].finish > waiting.start + records_.tolerance) {
        ++tally.broken;
        continue;
      }
      if (only_the_wait_explains(after, before)) ++tally.shown;
      tally.waits.push_back({.after = after, .before = before});
    }
  }

  bool only_the_wait_explains(std::uint32_t after, std::uint32_t before) const {
    const DeviceEvent& first = records_.events[before];
    const DeviceEvent& second = records_.events[after];
    if (records_.call_of(second)->finish + typical_.launch_fence > first.finish) return false;
    if (second.start - first.finish > kRightBehind + records_.tolerance) return false;
    const bool has_line = after > records_.streams[second.stream].first;
    if (has_line && records_.events[after - 1].finish + typical_.gap_fence > first.finish) {
      return false;
    }
    // Two copies may share a copy engine.
    if (first.kind != TaskKind::kernel && first.kind == second.kind) return false;
    return leaves_room(records_, first);
  }

  const Records& records_;
  const TypicalDelays& typical_;
  /// Times at which each thread made a stream wait.
  std::vector<std::vector<std::int64_t>> calls_;
  std::vector<std::vector<std::int64_t>> event_records_;  ///< And at which it recorded events.
  std::map<WaitKey, WaitTally> tallies_;
};

}  // namespace

void find_repeated_waits(const Records& records, const TypicalDelays& typical, EventWaits& waits) {
  const std::vector<SyncRecord>& syncs = records.trace.syncs;
  const bool recorded = std::any_of(syncs.begin(), syncs.end(), [](const SyncRecord& sync) {
    return sync.kind == SyncKind::stream_wait_event;
  });
  if (!recorded) RepeatedWaits(records, typical).find(waits);
}

}  // namespace foretrace::infer_detail
