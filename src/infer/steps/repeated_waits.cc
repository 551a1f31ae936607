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
// Ignored: events older than the last launch on their stream. If a program waits for those, work
// begins while later work of that stream still runs, and nothing is inferred.

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// Number of starts that only the wait explains before it is accepted. Chosen.
constexpr std::size_t kEnoughRepeats = 3;

/// Name and stream of the waiting work, and the stream it waits for.
using WaitKey = std::tuple<NameId, std::uint16_t, std::uint16_t>;

struct WaitTally {
  std::vector<EventWait> waits;
  std::size_t broken = 0;  ///< Starts that violate the wait.
  std::size_t shown = 0;   ///< Starts that only the wait explains.
};

class RepeatedWaits {
 public:
  RepeatedWaits(const Records& records, const TypicalDelays& typical)
      : records_(records), typical_(typical), calls_(records.trace.threads.size()) {
    for (const HostRecord& record : records.trace.hosts) {
      if (!is_call(record.kind)) continue;
      if (records.name(record).find("StreamWaitEvent") == std::string_view::npos) continue;
      calls_[record.thread].push_back(record.start_ns);
    }
    for (std::vector<std::int64_t>& times : calls_) std::sort(times.begin(), times.end());
  }

  void find(std::vector<EventWait>& waits) {
    // Time of the last launch of each thread.
    std::vector<std::int64_t> launched(calls_.size(), 0);
    for (const std::uint32_t i : records_.by_launch) {
      const Call& call = *records_.call_of(records_.events[i]);
      const std::int64_t since = std::exchange(launched[call.thread], call.start);
      const std::vector<std::int64_t>& times = calls_[call.thread];
      const auto behind = std::lower_bound(times.begin(), times.end(), call.start);
      if (behind != times.begin() && *std::prev(behind) > since) note(i, *std::prev(behind));
    }
    for (const auto& [key, tally] : tallies_) {
      if (tally.broken > 0 || tally.shown < kEnoughRepeats) continue;
      waits.insert(waits.end(), tally.waits.begin(), tally.waits.end());
    }
  }

 private:
  void note(std::uint32_t after, std::int64_t waited) {
    const DeviceEvent& waiting = records_.events[after];
    const std::int32_t device = records_.trace.streams[waiting.stream].device;
    for (std::size_t stream = 0; stream < records_.streams.size(); ++stream) {
      if (stream == waiting.stream || records_.trace.streams[stream].device != device) continue;
      const std::uint32_t before = last_launched_before(records_, stream, waited);
      if (before == kNone) continue;
      const NameId name = records_.trace.devices[waiting.record].name;
      WaitTally& tally =
          tallies_[WaitKey(name, waiting.stream, static_cast<std::uint16_t>(stream))];
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
