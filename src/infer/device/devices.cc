// Finds why each device task started when it did. Possible causes are the previous task on its
// stream, its launch, and activities on other streams. The cause that allows the latest start is
// the binding one: it gets the recorded lag, the others the typical lag of such a cause, so that
// they bind at the right time after a change. Lag beyond the typical one is unexplained; it is kept
// and counted.

#include <algorithm>
#include <limits>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// An awaited event explains a start up to this many ns beyond the typical lag. Chosen.
constexpr std::int64_t kEventJitter = 20'000;

/// The longest time, in ns, between the end of the awaited activity and the start of the waiting
/// one; 60us were seen on busy devices.
constexpr std::int64_t kLongestEventLag = 100'000;

/// Assumed number of multiprocessors of a device that the trace does not describe: as few as small
/// devices have, so that no full device is overlooked. Chosen.
constexpr std::uint32_t kFewMultiprocessors = 16;

/// The work on another stream that explains an event's late start.
struct Explanation {
  std::uint32_t before = kNone;
  std::int64_t lag = 0;
  Rule why = Rule::event_wait;
};

/// Searches the other streams for the cause of a start:
///
///     event wait    an activity that finished just before:             ====|   ->   |====
///     device full   a kernel of many blocks that ran all the time; room appears when its last
///                   blocks end
class WaitFinder {
 public:
  WaitFinder(const Records& records, std::int64_t launch_fence)
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

  /// Returns the activity on another device of the process that finished just before the event's
  /// start, later than `known`: work that was handed from device to device (a layer's output, by a
  /// peer copy). Only for starts that nothing on their own device explains. It would be wrong of
  /// devices that work independently where one begins late, for a reason that is not recorded, at
  /// a time when the other happens to finish; so the lag must be short.
  Explanation explain_by_device(std::uint32_t event, std::int64_t known,
                                std::int64_t longest_lag) const {
    const DeviceEvent& waiting = records_.events[event];
    Explanation finished;
    for (std::size_t stream = 0; stream < by_finish_.size(); ++stream) {
      if (device_of(stream) == device_of(waiting.stream)) continue;
      const std::vector<std::uint32_t>& events = by_finish_[stream];
      const auto behind = std::upper_bound(
          events.begin(), events.end(), waiting.start + records_.tolerance,
          [&](std::int64_t t, std::uint32_t i) { return t < records_.events[i].finish; });
      if (behind == events.begin()) continue;
      const DeviceEvent& before = records_.events[*std::prev(behind)];
      const std::int64_t lag = std::max<std::int64_t>(waiting.start - before.finish, 0);
      if (before.finish <= known || before.start >= waiting.start || lag > longest_lag) continue;
      if (finished.before != kNone && lag >= finished.lag) continue;
      finished = {*std::prev(behind), lag, Rule::event_wait};
    }
    return finished;
  }

  /// Returns the cause of the event's start, or no cause. A finished activity counts only if it
  /// finished after `known`.
  Explanation explain(std::uint32_t event, std::int64_t known) const {
    const DeviceEvent& waiting = records_.events[event];
    Explanation finished, full;
    std::int64_t latest = known;  // Latest finish before the start.
    std::int64_t least_left = std::numeric_limits<std::int64_t>::max();
    std::int64_t full_since = 0;
    for (std::size_t stream = 0; stream < by_finish_.size(); ++stream) {
      if (stream == waiting.stream || device_of(stream) != device_of(waiting.stream)) continue;
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
    // The device must have been full from the time when the event could have started.
    if (full.before != kNone && full_since <= latest + launch_fence_) return full;
    return {};
  }

 private:
  std::int32_t device_of(std::size_t stream) const { return records_.trace.streams[stream].device; }

  bool fills_device(const DeviceEvent& event) const {
    if (event.kind != TaskKind::kernel) return false;
    const std::uint32_t blocks = records_.trace.devices[event.record].grid;
    std::uint32_t places = kFewMultiprocessors;
    for (const Device& device : records_.trace.properties) {
      if (device.ordinal != records_.trace.streams[event.stream].device) continue;
      if (device.multiprocessors > 0) places = static_cast<std::uint32_t>(device.multiprocessors);
    }
    return blocks == 0 || blocks >= places;
  }

  const Records& records_;
  std::int64_t launch_fence_;
  std::vector<std::vector<std::uint32_t>> by_finish_;  ///< Events of each stream.
};

class Connector {
 public:
  Connector(const Records& records, const TypicalDelays& typical, EventWaits waits,
            Inference& result)
      : records_(records),
        typical_(typical),
        finder_(records, typical.launch_fence),
        waits_(std::move(waits)),
        result_(result) {
    find_graph_waits(records, result.graph.names(), waits_);
    find_collective_waits(records, waits_);
    sort_waits(waits_);
  }

  void connect() {
    std::size_t wait = 0;
    for (std::size_t i = 0; i < records_.events.size(); ++i) {
      const std::size_t from = wait;
      while (wait < waits_.size() && waits_[wait].after == i) ++wait;
      connect(static_cast<std::uint32_t>(i), from, wait);
    }
    report();
  }

 private:
  enum class Kind { line, launch, wait };
  struct Cause {
    Kind kind;
    std::int64_t time;     ///< When the cause was over (or the launch began).
    std::int64_t typical;  ///< Typical lag after `time`.
    std::int64_t fence;
    EventWait wait{};
    std::int64_t lag = 0;
  };

  void collect(std::uint32_t i, std::size_t from, std::size_t to) {
    causes_.clear();
    const DeviceEvent& event = records_.events[i];
    if (i > records_.streams[event.stream].first) {
      causes_.push_back(
          {Kind::line, records_.events[i - 1].finish, typical_.gap, typical_.gap_fence});
    }
    const Call* call = records_.call_of(event);
    if (call && call->launch_task != kNoTask) {
      const std::int64_t start = result_.recorded.start[index(call->launch_task)].count();
      causes_.push_back({Kind::launch, start, typical_.launch, typical_.launch_fence});
    }
    for (std::size_t w = from; w < to; ++w) {
      if (w > from && waits_[w].before == waits_[w - 1].before) continue;
      causes_.push_back({Kind::wait, records_.events[waits_[w].before].finish, typical_.event,
                         typical_.event + kEventJitter + records_.tolerance, waits_[w]});
    }
  }

  void connect(std::uint32_t i, std::size_t from, std::size_t to) {
    collect(i, from, to);
    const DeviceEvent& event = records_.events[i];
    if (causes_.empty()) return pin(event.task, records_.tolerance, result_);
    auto binding = latest();
    bool pinned = false;
    if (event.start - binding->time > binding->fence) {
      Explanation found = finder_.explain(i, binding->time);
      if (found.before == kNone) {
        found = finder_.explain_by_device(i, binding->time,
                                          typical_.event + kEventJitter + records_.tolerance);
      }
      if (found.before != kNone) {
        causes_.push_back({Kind::wait,
                           event.start - found.lag,
                           found.lag,
                           found.lag,
                           {i, found.before, Provenance::inferred, found.why}});
        binding = std::prev(causes_.end());
        ++searched_;
      } else if (is_first_of_many(i)) {
        // The device was busy with work from before the recording.
        pin(event.task, records_.tolerance, result_);
        pinned = true;
      } else {
        leave_open(event.task, event.start - binding->time - binding->typical);
      }
    }
    for (Cause& cause : causes_) {
      const std::int64_t slack = event.start - cause.time;
      cause.lag = &cause == &*binding && !pinned ? slack : std::min(cause.typical, slack);
    }
    for (const Cause& cause : causes_) add(event, cause);
  }

  void leave_open(TaskId task, std::int64_t time) {
    unexplained_ += time;
    ++unexplained_starts_;
    result_.open.push_back({task, Nanoseconds(time)});
  }

  /// Whether no recorded work ran on the device before, although the host already ran ahead.
  bool is_first_of_many(std::uint32_t i) const {
    constexpr std::ptrdiff_t kAhead = 8;  // Launches; chosen.
    const DeviceEvent& event = records_.events[i];
    const auto launched = std::partition_point(
        records_.by_launch.begin(), records_.by_launch.end(), [&](std::uint32_t other) {
          return records_.call_of(records_.events[other])->start < event.start;
        });
    if (launched - records_.by_launch.begin() < kAhead) return false;
    const auto device_of = [&](std::size_t stream) {
      return records_.trace.streams[stream].device;
    };
    for (std::size_t stream = 0; stream < records_.streams.size(); ++stream) {
      const auto [begin, end] = records_.streams[stream];
      if (begin == end || device_of(stream) != device_of(event.stream)) continue;
      if (begin != i && records_.events[begin].start <= event.start) return false;
    }
    return true;
  }

  std::vector<Cause>::iterator latest() {
    return std::max_element(causes_.begin(), causes_.end(), [](const Cause& a, const Cause& b) {
      return a.time + a.typical < b.time + b.typical;
    });
  }

  void add(const DeviceEvent& event, const Cause& cause) {
    if (cause.kind == Kind::line) {
      Task& task = result_.graph.task(event.task);
      const TaskId front = result_.graph.previous(event.task);
      const Overlap overlap = overlap_behind(result_.graph, front, cause.lag);
      task.tail = overlap.tail;
      task.gap = overlap.lag;
      if (cause.lag < 0) ++overlaps_;
      return;
    }
    if (cause.kind == Kind::launch) {
      if (cause.lag < 0) ++early_;
      result_.graph.add({.before = records_.call_of(event)->launch_task,
                         .after = event.task,
                         .lag = Nanoseconds(std::max<std::int64_t>(cause.lag, 0)),
                         .anchor = Anchor::start,
                         .provenance = Provenance::measured,
                         .why = Rule::launch});
      return;
    }
    const TaskId before = records_.events[cause.wait.before].task;
    const Overlap overlap = overlap_behind(result_.graph, before, cause.lag);
    result_.graph.add({.before = before,
                       .after = event.task,
                       .lag = overlap.lag,
                       .provenance = cause.wait.provenance,
                       .tail = overlap.tail,
                       .why = cause.wait.why});
  }

  void report() {
    result_.graph.unexplained().lag = Nanoseconds(unexplained_);
    const auto note = [&](std::string_view text, std::int64_t count) {
      if (count > 0) result_.notes.add(Severity::info, text, {}, count);
    };
    note("device activities that overlap the one before them on their stream", overlaps_);
    note("device activities that start before their launch", early_);
    note("starts attributed to another stream because of their time alone", searched_);
    note("starts without a known cause", unexplained_starts_);
    if (searched_ > 0) {
      result_.assumptions.push_back(
          "Waits between streams are inferred from times where no sync record shows them.");
    }
  }

  const Records& records_;
  const TypicalDelays& typical_;
  WaitFinder finder_;
  EventWaits waits_;
  Inference& result_;
  std::vector<Cause> causes_;
  std::int64_t unexplained_ = 0;
  std::int64_t unexplained_starts_ = 0, overlaps_ = 0, early_ = 0, searched_ = 0;
};

}  // namespace

void connect_devices(const Records& records, const TypicalDelays& typical, EventWaits waits,
                     Inference& result) {
  Connector(records, typical, std::move(waits), result).connect();
}

}  // namespace foretrace::infer_detail
