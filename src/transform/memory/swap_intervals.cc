// Chooses blocks by how long they are unused (Capuchin, ASPLOS 2020; AutoSwap, arXiv 1903.06631). A
// pair of accesses has the free time
//
//     FT = start of the later - finish of the earlier - time out - time in
//
// and is hidden if FT >= 0 and both copies find room on the link, which carries one copy at a time
// in each direction: the copy out as early as possible, the copy in as late as possible. While the
// peak is too high, the pair with the best score of those that are away at the peak is taken:
//
//     doa   FT                          wdoa   area under the memory curve between the accesses
//     aoa   size * FT, or FT / size     swdoa  the same, on the curve without the blocks that
//           where FT < 0                       have already left
//
// Ignored: the limit of host memory, and the share of copies in the bandwidth of kernels.

#include <algorithm>
#include <map>
#include <optional>

#include "transform/edit/channel.h"
#include "transform/edit/load_curve.h"
#include "transform/memory/swap.h"

namespace foretrace {
namespace {

/// Two consecutive accesses, and when the block could be away. The latter is on the clock of the
/// allocator, which may follow the host's calls, far ahead of the device.
struct SwapCandidate {
  std::uint32_t allocation = 0;
  TaskId evicted = kNoTask, back = kNoTask;
  Nanoseconds idle_from{}, idle_until{};  ///< When the device does not use the block.
  Nanoseconds away_from{}, away_until{};  ///< When it could be away, at best.
  Nanoseconds out_time{}, in_time{};
  double score = 0;
  bool hideable = true;
  bool taken = false;  ///< Already part of the plan.

  Nanoseconds free_time() const { return idle_until - idle_from - out_time - in_time; }
};

class IntervalPlanner {
 public:
  IntervalPlanner(const Graph& graph, const Timeline& timeline, const Launches& launches,
                  const SwapLink& link, const IntervalSettings& settings)
      : graph_(graph),
        timeline_(timeline),
        launches_(launches),
        link_(link),
        settings_(settings),
        events_(memory_events(graph, timeline)),
        positions_(graph.task_count(), 0) {
    for (std::size_t i = 0; i < graph.lane_count(); ++i) list_lane(LaneId(i));
  }

  SwapPlan plan() {
    std::map<std::int32_t, std::vector<SwapCandidate>> devices;
    const AccessLists accesses(graph_);
    for (const std::uint32_t number : settings_.where.select_some(graph_)) {
      const Allocation& block = graph_.allocations()[number];
      if (block.bytes >= settings_.min_bytes)
        list_candidates(number, accesses, devices[block.device]);
    }
    for (auto& [device, candidates] : devices) plan_device(device, candidates);
    return std::move(plan_);
  }

 private:
  struct LaneTasks {
    std::vector<TaskId> tasks;
    std::vector<Nanoseconds> finishes;
  };

  /// The task that waits for the copy out, the task that the copy in waits for, and the times of
  /// both copies.
  struct CopySchedule {
    TaskId freed_at = kNoTask, trigger = kNoTask;
    Nanoseconds out_start{}, in_start{};
    Nanoseconds away_from{}, away_until{};
    Nanoseconds late{};  ///< Time that tasks wait for nothing but the copies.
  };

  void list_lane(LaneId lane) {
    LaneTasks line;
    Nanoseconds latest = Nanoseconds::min();
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      positions_[index(task)] = static_cast<std::uint32_t>(line.tasks.size());
      line.tasks.push_back(task);
      latest = std::max(latest, timeline_.finish[index(task)]);
      line.finishes.push_back(latest);
    }
    lane_tasks_.push_back(std::move(line));
  }

  const LaneTasks& lane_tasks(TaskId task) const {
    return lane_tasks_[index(graph_.lane_of(task))];
  }
  Nanoseconds start(TaskId task) const { return timeline_.start[index(task)]; }
  Nanoseconds finish(TaskId task) const { return timeline_.finish[index(task)]; }

  void list_candidates(std::uint32_t number, const AccessLists& accesses,
                       std::vector<SwapCandidate>& candidates) {
    const std::vector<TimedAccess> uses = timed_accesses(graph_, timeline_, accesses, number);
    const Allocation& block = graph_.allocations()[number];
    TaskId last = kNoTask;
    for (std::size_t i = 0; i + 1 < uses.size(); ++i) {
      if (last == kNoTask || uses[i].finish >= finish(last)) last = uses[i].task;
      SwapCandidate candidate{.allocation = number, .evicted = last, .back = uses[i + 1].task};
      candidate.idle_from = finish(last), candidate.idle_until = uses[i + 1].start;
      candidate.out_time = link_.out_time(block.bytes);
      candidate.in_time = link_.in_time(block.bytes);
      if (candidate.idle_until <= candidate.idle_from || start(last) >= candidate.idle_until)
        continue;
      ++plan_.considered;
      candidate.hideable = candidate.free_time() >= 0ns;
      if (candidate.hideable) ++plan_.hideable;
      if (settings_.hidden_only && !candidate.hideable) continue;
      const bool calls = freed_by_calls(graph_, block);
      candidate.away_from = calls ? call_start(candidate.evicted) : candidate.idle_from;
      candidate.away_until = calls ? call_start(candidate.back) : candidate.idle_until;
      if (candidate.away_until > candidate.away_from) candidates.push_back(candidate);
    }
  }

  /// Returns when the host launches a task; the task's own start if the launch is unknown.
  Nanoseconds call_start(TaskId task) const {
    const TaskId call = launches_.launch_of(task);
    return call == kNoTask ? start(task) : start(call);
  }

  void plan_device(std::int32_t device, std::vector<SwapCandidate>& candidates) {
    LoadCurve curve(graph_, timeline_, events_, device);
    const Bytes enough = wanted_peak(curve.peak());
    score(curve, candidates);
    out_ = recorded_copies(device, TaskKind::copy_out);
    in_ = recorded_copies(device, TaskKind::copy_in);
    while (curve.peak() > enough) {
      const LoadCurve::Interval peak = curve.peak_interval();
      if (take_hidden(curve, candidates, peak)) continue;
      if (settings_.hidden_only || !take_late(curve, candidates, peak)) break;
    }
  }

  Bytes wanted_peak(Bytes peak) const {
    Bytes least{-1};
    if (settings_.saved_bytes > Bytes{}) least = std::max(least, peak - settings_.saved_bytes);
    if (settings_.target > Bytes{}) least = std::max(least, settings_.target);
    if (settings_.share > 0) {
      const double kept = static_cast<double>(peak.count) * (1 - settings_.share);
      least = std::max(least, Bytes{static_cast<std::int64_t>(kept)});
    }
    return least;
  }

  void score(const LoadCurve& curve, std::vector<SwapCandidate>& candidates) const {
    for (SwapCandidate& candidate : candidates) candidate.score = score_of(curve, candidate);
  }

  double score_of(const LoadCurve& curve, const SwapCandidate& candidate) const {
    const auto free_time = static_cast<double>(candidate.free_time().count());
    if (settings_.score == "doa") return free_time;
    const auto size = static_cast<double>(graph_.allocations()[candidate.allocation].bytes.count);
    if (settings_.score == "aoa") return free_time >= 0 ? size * free_time : free_time / size;
    return curve.area(candidate.away_from, candidate.away_until);
  }

  struct Copies {
    Channel channel;
    std::vector<TaskId> tasks;
    std::vector<Nanoseconds> finishes;
  };

  /// The trace's own copies on the link, which come first.
  Copies recorded_copies(std::int32_t device, TaskKind kind) const {
    Copies copies;
    for (std::size_t i = 0; i < graph_.lane_count(); ++i) {
      if (graph_.lane(LaneId(i)).device != device) continue;
      for (const TaskId task : lane_tasks_[i].tasks) {
        if (graph_.task(task).kind == kind) copies.tasks.push_back(task);
      }
    }
    std::sort(copies.tasks.begin(), copies.tasks.end(), [&](TaskId a, TaskId b) {
      return std::pair(finish(a), a) < std::pair(finish(b), b);
    });
    for (const TaskId task : copies.tasks) {
      copies.channel.take(start(task), finish(task));
      copies.finishes.push_back(finish(task));
    }
    return copies;
  }

  /// Returns the last of the trace's copies that ends by `start`; kNoTask if it ends by `settled`
  /// anyway.
  static TaskId last_before(const Copies& copies, Nanoseconds settled, Nanoseconds start) {
    const auto behind = std::upper_bound(copies.finishes.begin(), copies.finishes.end(), start);
    if (behind == copies.finishes.begin() || *std::prev(behind) <= settled) return kNoTask;
    return copies.tasks[static_cast<std::size_t>(behind - copies.finishes.begin()) - 1];
  }

  static bool is_away(Nanoseconds from, Nanoseconds until, LoadCurve::Interval peak) {
    return from <= peak.start && until >= peak.finish;
  }

  /// Takes the candidate with the best score that is away at the peak and delays nothing. Returns
  /// false if there is none.
  bool take_hidden(LoadCurve& curve, std::vector<SwapCandidate>& candidates,
                   LoadCurve::Interval peak) {
    std::vector<char> tried(candidates.size(), 0);
    while (true) {
      std::size_t best = candidates.size();
      double best_score = 0;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const SwapCandidate& candidate = candidates[i];
        if (candidate.taken || !candidate.hideable || tried[i] != 0) continue;
        if (!is_away(candidate.away_from, candidate.away_until, peak)) continue;
        const double score =
            settings_.score == "swdoa" ? score_of(curve, candidate) : candidate.score;
        if (best < candidates.size() && score <= best_score) continue;
        best = i, best_score = score;
      }
      if (best == candidates.size()) return false;
      tried[best] = 1;
      const std::optional<CopySchedule> schedule = hidden_schedule(candidates[best]);
      if (!schedule) {
        candidates[best].hideable = false;
      } else if (is_away(schedule->away_from, schedule->away_until, peak)) {
        take(curve, candidates[best], *schedule, true);
        return true;
      }
    }
  }

  /// Takes the candidate that is away at the peak and costs the least time for its size. Returns
  /// false if there is none.
  bool take_late(LoadCurve& curve, std::vector<SwapCandidate>& candidates,
                 LoadCurve::Interval peak) {
    SwapCandidate* best = nullptr;
    CopySchedule best_schedule;
    double least = 0;
    for (SwapCandidate& candidate : candidates) {
      if (candidate.taken || !is_away(candidate.away_from, candidate.away_until, peak)) continue;
      const std::optional<CopySchedule> schedule = late_schedule(candidate, peak);
      if (!schedule || !is_away(schedule->away_from, schedule->away_until, peak)) continue;
      const double cost =
          static_cast<double>(schedule->late.count()) /
          static_cast<double>(graph_.allocations()[candidate.allocation].bytes.count);
      if (best != nullptr && cost >= least) continue;
      best = &candidate, best_schedule = *schedule, least = cost;
    }
    if (best != nullptr) take(curve, *best, best_schedule, false);
    return best != nullptr;
  }

  /// Places both copies so that they delay nothing; nullopt if the link has no room. The link only
  /// gets fuller, so copies that find no place now never will.
  std::optional<CopySchedule> hidden_schedule(const SwapCandidate& candidate) const {
    CopySchedule schedule;
    schedule.out_start = out_.channel.first_slot(candidate.idle_from, candidate.out_time);
    schedule.in_start = in_.channel.last_slot(candidate.idle_until, candidate.in_time);
    const Nanoseconds evicted_at = schedule.out_start + candidate.out_time;
    if (evicted_at > schedule.in_start) return std::nullopt;
    schedule.freed_at =
        first_from(candidate.evicted, evicted_at,
                   freed_by_calls(graph_, graph_.allocations()[candidate.allocation]));
    schedule.trigger = last_until(candidate.back, schedule.in_start);
    settle(candidate, schedule, evicted_at);
    return schedule;
  }

  /// Places both copies so that the block is away at the peak, at any cost: unless they fit in
  /// time, the task that makes the peak waits for the copy out, and the copy in waits for the end
  /// of the peak. Returns nullopt if the accesses leave no room.
  std::optional<CopySchedule> late_schedule(const SwapCandidate& candidate,
                                            LoadCurve::Interval peak) const {
    const bool calls = freed_by_calls(graph_, graph_.allocations()[candidate.allocation]);
    const auto begins = [&](TaskId task) { return calls ? call_start(task) : start(task); };
    const auto ends = [&](TaskId task) { return calls ? call_finish(task) : finish(task); };
    CopySchedule schedule;
    schedule.out_start = out_.channel.first_slot(candidate.idle_from, candidate.out_time);
    const Nanoseconds evicted_at = schedule.out_start + candidate.out_time;
    schedule.freed_at = first_from(candidate.evicted, evicted_at, calls);
    if (schedule.freed_at == kNoTask || begins(schedule.freed_at) > peak.start) {
      const std::vector<TaskId>& line = lane_tasks(candidate.evicted).tasks;
      const auto behind = line.begin() + positions_[index(candidate.evicted)] + 1;
      const auto late = std::partition_point(
          behind, line.end(), [&](TaskId task) { return begins(task) <= peak.start; });
      if (late == behind || start(*std::prev(late)) <= start(candidate.evicted))
        return std::nullopt;
      schedule.freed_at = *std::prev(late);
    }
    schedule.in_start = in_.channel.last_slot(candidate.idle_until, candidate.in_time);
    schedule.trigger = last_until(candidate.back, schedule.in_start);
    if (schedule.trigger == kNoTask || ends(schedule.trigger) < peak.finish) {
      const std::vector<TaskId>& line = lane_tasks(candidate.back).tasks;
      const auto user = line.begin() + positions_[index(candidate.back)];
      const auto past = std::partition_point(line.begin(), user,
                                             [&](TaskId task) { return ends(task) < peak.finish; });
      if (past == user || start(*past) >= candidate.idle_until) return std::nullopt;
      schedule.trigger = *past;
    }
    schedule.in_start = std::max(schedule.in_start, std::max(evicted_at, finish(schedule.trigger)));
    schedule.in_start = in_.channel.first_slot(schedule.in_start, candidate.in_time);
    schedule.away_from = begins(schedule.freed_at);
    schedule.away_until = ends(schedule.trigger);
    schedule.late = std::max(evicted_at - start(schedule.freed_at), 0ns) +
                    std::max(schedule.in_start + candidate.in_time - candidate.idle_until, 0ns);
    return schedule;
  }

  /// Returns the first task behind `evicted` on its lane that starts once the block is gone and, if
  /// `called`, has a launch call.
  TaskId first_from(TaskId evicted, Nanoseconds evicted_at, bool called) const {
    const LaneTasks& line = lane_tasks(evicted);
    const auto behind = std::lower_bound(line.finishes.begin(), line.finishes.end(), evicted_at);
    auto i = static_cast<std::size_t>(behind - line.finishes.begin());
    for (i = std::max<std::size_t>(i, positions_[index(evicted)] + 1); i < line.tasks.size(); ++i) {
      const TaskId task = line.tasks[i];
      if (start(task) >= evicted_at && (!called || launches_.launch_of(task) != kNoTask))
        return task;
    }
    return kNoTask;
  }

  /// Returns the last task before `back` on its lane that is done by `in_start`.
  TaskId last_until(TaskId back, Nanoseconds in_start) const {
    const LaneTasks& line = lane_tasks(back);
    const auto behind = std::upper_bound(line.finishes.begin(), line.finishes.end(), in_start);
    auto i = static_cast<std::size_t>(behind - line.finishes.begin());
    i = std::min<std::size_t>(i, positions_[index(back)]);
    return i == 0 ? kNoTask : line.tasks[i - 1];
  }

  Nanoseconds call_finish(TaskId task) const {
    const TaskId call = launches_.launch_of(task);
    return call == kNoTask ? finish(task) : finish(call);
  }

  void settle(const SwapCandidate& candidate, CopySchedule& schedule,
              Nanoseconds evicted_at) const {
    const bool calls = freed_by_calls(graph_, graph_.allocations()[candidate.allocation]);
    schedule.away_from = evicted_at, schedule.away_until = schedule.in_start;
    if (!calls) {
      // The copy in starts with the task it waits for, which may be earlier than necessary.
      if (schedule.trigger != kNoTask)
        schedule.away_until = std::max(evicted_at, finish(schedule.trigger));
      schedule.freed_at = kNoTask;
      return;
    }
    schedule.away_from =
        schedule.freed_at == kNoTask ? Nanoseconds::max() : call_start(schedule.freed_at);
    schedule.away_until =
        schedule.trigger == kNoTask ? Nanoseconds::min() : call_finish(schedule.trigger);
  }

  void take(LoadCurve& curve, SwapCandidate& candidate, const CopySchedule& schedule, bool hidden) {
    candidate.taken = true;
    curve.lower(schedule.away_from, schedule.away_until,
                graph_.allocations()[candidate.allocation].bytes);
    out_.channel.take(schedule.out_start, schedule.out_start + candidate.out_time);
    in_.channel.take(schedule.in_start, schedule.in_start + candidate.in_time);
    Swap swap{.allocation = candidate.allocation,
              .out_after = candidate.evicted,
              .freed_at = schedule.freed_at,
              .trigger = schedule.trigger,
              .back = candidate.back};
    swap.out_start = schedule.out_start, swap.in_start = schedule.in_start;
    swap.hidden = hidden;
    if (hidden) {
      swap.out_behind = last_before(out_, candidate.idle_from, schedule.out_start);
      const Nanoseconds settled =
          schedule.trigger == kNoTask ? Nanoseconds::min() : finish(schedule.trigger);
      swap.in_behind = last_before(in_, settled, schedule.in_start);
    } else {
      plan_.in_access_order = true;
    }
    plan_.swaps.push_back(swap);
  }

  const Graph& graph_;
  const Timeline& timeline_;
  const Launches& launches_;
  const SwapLink& link_;
  const IntervalSettings& settings_;
  std::vector<MemoryEvent> events_;
  std::vector<std::uint32_t> positions_;
  std::vector<LaneTasks> lane_tasks_;
  Copies out_, in_;  ///< Copies of the device that is planned.
  SwapPlan plan_;
};

}  // namespace

SwapPlan plan_by_interval(const Graph& graph, const Timeline& timeline, const Launches& launches,
                          const SwapLink& link, const IntervalSettings& settings) {
  return IntervalPlanner(graph, timeline, launches, link, settings).plan();
}

}  // namespace foretrace
