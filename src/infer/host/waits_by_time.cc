// Waits that no name and no record shows. The evidence is the time of their returns: a call that
// launches nothing, takes long, and again and again returns just when the last work launched before
// it is done, waits for that work, whatever it is called.
//
//     call      |---------------|   |-----------|
//     device   ..===============|  ..===========|
//
// It would be wrong of a call whose own work happens to take as long as the device's backlog, in
// most of its calls.
//
// Nor is there a call where an allocator that runs out of memory waits before it frees: PyTorch
// waits for the events of blocks that other streams use (CUDACachingAllocator,
// synchronize_and_free_events), which its profiler does not record. The op then goes on with a call
// that frees memory, right behind the end of work.
//
//     op        |--------------| cudaFree | cudaFree |
//     device   ===============|

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <vector>

#include "base/wording.h"
#include "foretrace/timeline.h"
#include "infer/passes.h"
#include "trace/wait_call.h"

namespace foretrace::infer_detail {
namespace {

/// A shorter call, in ns, is no evidence: work of a few microseconds may end beside it by chance.
/// Chosen; recalled: a call of a driver that does not wait takes 1 to 20 us.
constexpr std::int64_t kLongCall = 100'000;
/// At least this share of a name's long calls must return behind work. Chosen.
constexpr double kMaxCalls = 0.8;

/// An allocator that waited frees its first block this long, in ns, after the work was done at the
/// latest. Chosen; seen: 38 and 47 us.
constexpr std::int64_t kLongestGoingOn = 100'000;

/// The long calls of one name that began with work outstanding.
struct ReturnTally {
  std::size_t calls = 0;
  std::vector<std::uint32_t> behind{};  ///< Host records that returned just behind the work.
};

bool may_wait_unnamed(const Records& records, std::uint32_t number) {
  const HostRecord& record = records.trace.hosts[number];
  if (!is_call(record.kind) || record.duration_ns < kLongCall) return false;
  if (wait_call(records.name(record)) != WaitCall::none) return false;
  const std::uint32_t call = records.call_of_record[number];
  return call == kNone || records.calls[call].launched.empty();
}

bool has_outstanding(const Records& records, std::int64_t time) {
  for (std::size_t stream = 0; stream < records.streams.size(); ++stream) {
    const std::uint32_t event = last_launched_before(records, stream, time);
    if (event != kNone && records.events[event].finish > time) return true;
  }
  return false;
}

/// A larger share of the steps is named in the grade. Chosen.
constexpr double kSomeUnknown = 0.01;

}  // namespace

void find_waits_by_time(Records& records) {
  std::map<NameId, ReturnTally> tallies;
  for (std::uint32_t i = 0; i < records.trace.hosts.size(); ++i) {
    if (!may_wait_unnamed(records, i)) continue;
    const HostRecord& record = records.trace.hosts[i];
    const std::int64_t finish = record.start_ns + record.duration_ns;
    if (!has_outstanding(records, record.start_ns)) continue;
    ReturnTally& tally = tallies[record.name];
    ++tally.calls;
    const std::uint32_t done = latest_done(records, record.start_ns, finish);
    if (done == kNone || has_outstanding(records, finish + records.tolerance)) continue;
    if (finish - records.events[done].finish <= kRightBehind) tally.behind.push_back(i);
  }
  for (const auto& [name, tally] : tallies) {
    const auto behind = static_cast<double>(tally.behind.size());
    if (tally.behind.size() < kMinRepeats) continue;
    if (behind < kMaxCalls * static_cast<double>(tally.calls)) continue;
    for (const std::uint32_t i : tally.behind)
      records.calls[call_at(records, i)].waits_by_time = true;
  }
}

void widen_releases(Records& records, HostTime& host) {
  const Trace& trace = records.trace;
  std::vector<char> releases(trace.names.size());
  for (std::size_t i = 0; i < releases.size(); ++i)
    releases[i] = wait_call(trace.names[static_cast<NameId>(i)]) == WaitCall::at_release ? 1 : 0;
  const auto waited = [&](const Segment& op, const Segment& release) {
    if (op.record == kNone || release.record == kNone || op.call != kNone) return false;
    if (releases[static_cast<std::size_t>(trace.hosts[release.record].name)] == 0) return false;
    const std::int64_t length = op.finish - op.start;
    if (trace.hosts[op.record].kind != HostKind::op || length < kLongCall) return false;
    const std::uint32_t done = latest_done(records, op.start, op.finish);
    return done != kNone &&
           op.finish - records.events[done].finish <= std::min(kLongestGoingOn, length / 10);
  };
  for (std::vector<Segment>& segments : host.segments) {
    for (std::size_t i = 1; i < segments.size(); ++i) {
      if (!waited(segments[i - 1], segments[i])) continue;
      segments[i].call = call_at(records, segments[i].record);
      segments[i].start = records.calls[segments[i].call].start = segments[i - 1].start;
      segments[i - 1].finish = segments[i - 1].start;
    }
    std::erase_if(segments, [](const Segment& segment) {
      return segment.call == kNone && segment.start == segment.finish;
    });
  }
}

void note_unknown_device_time(const Records& records, Inference& result) {
  Graph& graph = result.graph;
  const StepWindow window = step_window(graph, result.recorded);
  Nanoseconds most{0};
  std::int64_t waits = 0;
  NameId name{};
  for (std::uint32_t lane = 0; lane < graph.lane_count(); ++lane) {
    Nanoseconds sum{0};
    std::int64_t count = 0;
    for (TaskId id = graph.first(LaneId{lane}); id != kNoTask; id = graph.next(id)) {
      if (graph.task(id).kind != TaskKind::unknown) continue;
      const Nanoseconds from = std::max(result.recorded.start[index(id)], window.from);
      const Nanoseconds to = std::min(result.recorded.finish[index(id)], window.to);
      if (from >= to) continue;
      sum += to - from, ++count;
      if (sum > most) name = graph.task(id).name;
    }
    if (sum > most) most = sum, waits = count;
  }
  if (window.to <= window.from) return;
  const double share =
      static_cast<double>(most.count()) / static_cast<double>((window.to - window.from).count());
  if (share < kSomeUnknown) return;
  graph.unexplained().shortcomings.push_back(
      {.name = "unknown_device_time",
       .text = fmt::format(
           "{} of the {} is unknown device time: {} of the host ({}) {} for work that is not "
           "recorded; record the device's activities too, of this process, from before the first "
           "step",
           to_share(share), graph.steps().empty() ? "recording" : "steps", counted(waits, "wait"),
           records.trace.names[name], waits == 1 ? "is" : "are"),
       .share = share,
       .is_fatal = share > kMuchMissing});
}

}  // namespace foretrace::infer_detail
