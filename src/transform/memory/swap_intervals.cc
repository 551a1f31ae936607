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
struct Pair {
  std::uint32_t allocation = 0;
  TaskId evicted = kNoTask, back = kNoTask;
  Nanoseconds idle_from{}, idle_until{};  ///< When the device does not use the block.
  Nanoseconds away_from{}, away_until{};  ///< When it could be away, at best.
  Nanoseconds out_time{}, in_time{};
  double score = 0;
  bool hideable = true;
  bool dead = false;  ///< Already part of the plan.

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
    for (std::size_t i = 0; i < graph.lane_count(); ++i) list_line(LaneId(i));
  }

  SwapPlan plan() {
    std::map<std::int32_t, std::vector<Pair>> devices;
    const AccessLists accesses(graph_);
    for (const std::uint32_t number : settings_.where.select_some(graph_)) {
      const Allocation& block = graph_.allocations()[number];
      if (block.bytes >= settings_.min_bytes) list_pairs(number, accesses, devices[block.device]);
    }
    for (auto& [device, pairs] : devices) plan_device(device, pairs);
    return std::move(plan_);
  }

 private:
  struct Line {
    std::vector<TaskId> tasks;
    std::vector<Nanoseconds> finishes;
  };

  /// The task that waits for the copy out, the task that the copy in waits for, and the times of
  /// both copies.
  struct Place {
    TaskId freed_at = kNoTask, trigger = kNoTask;
    Nanoseconds out_start{}, in_start{};
    Nanoseconds away_from{}, away_until{};
    Nanoseconds late{};  ///< Time that tasks wait for nothing but the copies.
  };

  void list_line(LaneId lane) {
    Line line;
    Nanoseconds latest = Nanoseconds::min();
    for (TaskId task = graph_.first(lane); task != kNoTask; task = graph_.next(task)) {
      positions_[index(task)] = static_cast<std::uint32_t>(line.tasks.size());
      line.tasks.push_back(task);
      latest = std::max(latest, timeline_.finish[index(task)]);
      line.finishes.push_back(latest);
    }
    lines_.push_back(std::move(line));
  }

  const Line& line_of(TaskId task) const { return lines_[index(graph_.lane_of(task))]; }
  Nanoseconds start(TaskId task) const { return timeline_.start[index(task)]; }
  Nanoseconds finish(TaskId task) const { return timeline_.finish[index(task)]; }

  void list_pairs(std::uint32_t number, const AccessLists& accesses, std::vector<Pair>& pairs) {
    const std::vector<Touch> touches = touches_of(graph_, timeline_, accesses, number);
    const Allocation& block = graph_.allocations()[number];
    TaskId last = kNoTask;
    for (std::size_t i = 0; i + 1 < touches.size(); ++i) {
      if (last == kNoTask || touches[i].finish >= finish(last)) last = touches[i].task;
      Pair pair{.allocation = number, .evicted = last, .back = touches[i + 1].task};
      pair.idle_from = finish(last), pair.idle_until = touches[i + 1].start;
      pair.out_time = link_.out_time(block.bytes), pair.in_time = link_.in_time(block.bytes);
      if (pair.idle_until <= pair.idle_from || start(last) >= pair.idle_until) continue;
      ++plan_.considered;
      pair.hideable = pair.free_time() >= 0ns;
      if (pair.hideable) ++plan_.hideable;
      if (settings_.hidden_only && !pair.hideable) continue;
      const bool calls = freed_by_calls(graph_, block);
      pair.away_from = calls ? call_start(pair.evicted) : pair.idle_from;
      pair.away_until = calls ? call_start(pair.back) : pair.idle_until;
      if (pair.away_until > pair.away_from) pairs.push_back(pair);
    }
  }

  /// Returns when the host launches a task; the task's own start if the launch is unknown.
  Nanoseconds call_start(TaskId task) const {
    const TaskId call = launches_.launch_of(task);
    return call == kNoTask ? start(task) : start(call);
  }

  void plan_device(std::int32_t device, std::vector<Pair>& pairs) {
    LoadCurve curve(graph_, timeline_, events_, device);
    const Bytes enough = wanted_peak(curve.peak());
    score(curve, pairs);
    out_ = recorded_copies(device, TaskKind::copy_out);
    in_ = recorded_copies(device, TaskKind::copy_in);
    while (curve.peak() > enough) {
      const LoadCurve::Stretch peak = curve.peak_stretch();
      if (take_hidden(curve, pairs, peak)) continue;
      if (settings_.hidden_only || !take_late(curve, pairs, peak)) break;
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

  void score(const LoadCurve& curve, std::vector<Pair>& pairs) const {
    for (Pair& pair : pairs) pair.score = score_of(curve, pair);
  }

  double score_of(const LoadCurve& curve, const Pair& pair) const {
    const auto free_time = static_cast<double>(pair.free_time().count());
    if (settings_.score == "doa") return free_time;
    const auto size = static_cast<double>(graph_.allocations()[pair.allocation].bytes.count);
    if (settings_.score == "aoa") return free_time >= 0 ? size * free_time : free_time / size;
    return curve.area(pair.away_from, pair.away_until);
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
      for (const TaskId task : lines_[i].tasks) {
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

  static bool is_away(Nanoseconds from, Nanoseconds until, LoadCurve::Stretch peak) {
    return from <= peak.start && until >= peak.finish;
  }

  /// Takes the pair with the best score that is away at the peak and delays nothing. Returns false
  /// if there is none.
  bool take_hidden(LoadCurve& curve, std::vector<Pair>& pairs, LoadCurve::Stretch peak) {
    std::vector<char> tried(pairs.size(), 0);
    while (true) {
      std::size_t best = pairs.size();
      double best_score = 0;
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const Pair& pair = pairs[i];
        if (pair.dead || !pair.hideable || tried[i] != 0) continue;
        if (!is_away(pair.away_from, pair.away_until, peak)) continue;
        const double score = settings_.score == "swdoa" ? score_of(curve, pair) : pair.score;
        if (best < pairs.size() && score <= best_score) continue;
        best = i, best_score = score;
      }
      if (best == pairs.size()) return false;
      tried[best] = 1;
      const std::optional<Place> place = hidden_place(pairs[best]);
      if (!place) {
        pairs[best].hideable = false;
      } else if (is_away(place->away_from, place->away_until, peak)) {
        take(curve, pairs[best], *place, true);
        return true;
      }
    }
  }

  /// Takes the pair that is away at the peak and costs the least time for its size. Returns false
  /// if there is none.
  bool take_late(LoadCurve& curve, std::vector<Pair>& pairs, LoadCurve::Stretch peak) {
    Pair* best = nullptr;
    Place best_place;
    double least = 0;
    for (Pair& pair : pairs) {
      if (pair.dead || !is_away(pair.away_from, pair.away_until, peak)) continue;
      const std::optional<Place> place = late_place(pair, peak);
      if (!place || !is_away(place->away_from, place->away_until, peak)) continue;
      const double cost = static_cast<double>(place->late.count()) /
                          static_cast<double>(graph_.allocations()[pair.allocation].bytes.count);
      if (best != nullptr && cost >= least) continue;
      best = &pair, best_place = *place, least = cost;
    }
    if (best != nullptr) take(curve, *best, best_place, false);
    return best != nullptr;
  }

  /// Places both copies so that they delay nothing; nullopt if the link has no room. The link only
  /// gets fuller, so copies that find no place now never will.
  std::optional<Place> hidden_place(const Pair& pair) const {
    Place place;
    place.out_start = out_.channel.first_slot(pair.idle_from, pair.out_time);
    place.in_start = in_.channel.last_slot(pair.idle_until, pair.in_time);
    const Nanoseconds gone = place.out_start + pair.out_time;
    if (gone > place.in_start) return std::nullopt;
    place.freed_at = first_from(pair.evicted, gone,
                                freed_by_calls(graph_, graph_.allocations()[pair.allocation]));
    place.trigger = last_until(pair.back, place.in_start);
    settle(pair, place, gone);
    return place;
  }

  /// Places both copies so that the block is away at the peak, at any cost: unless they fit in
  /// time, the task that makes the peak waits for the copy out, and the copy in waits for the end
  /// of the peak. Returns nullopt if the accesses leave no room.
  std::optional<Place> late_place(const Pair& pair, LoadCurve::Stretch peak) const {
    const bool calls = freed_by_calls(graph_, graph_.allocations()[pair.allocation]);
    const auto begins = [&](TaskId task) { return calls ? call_start(task) : start(task); };
    const auto ends = [&](TaskId task) { return calls ? call_finish(task) : finish(task); };
    Place place;
    place.out_start = out_.channel.first_slot(pair.idle_from, pair.out_time);
    const Nanoseconds gone = place.out_start + pair.out_time;
    place.freed_at = first_from(pair.evicted, gone, calls);
    if (place.freed_at == kNoTask || begins(place.freed_at) > peak.start) {
      const std::vector<TaskId>& line = line_of(pair.evicted).tasks;
      const auto behind = line.begin() + positions_[index(pair.evicted)] + 1;
      const auto late = std::partition_point(
          behind, line.end(), [&](TaskId task) { return begins(task) <= peak.start; });
      if (late == behind || start(*std::prev(late)) <= start(pair.evicted)) return std::nullopt;
      place.freed_at = *std::prev(late);
    }
    place.in_start = in_.channel.last_slot(pair.idle_until, pair.in_time);
    place.trigger = last_until(pair.back, place.in_start);
    if (place.trigger == kNoTask || ends(place.trigger) < peak.finish) {
      const std::vector<TaskId>& line = line_of(pair.back).tasks;
      const auto user = line.begin() + positions_[index(pair.back)];
      const auto past = std::partition_point(line.begin(), user,
                                             [&](TaskId task) { return ends(task) < peak.finish; });
      if (past == user || start(*past) >= pair.idle_until) return std::nullopt;
      place.trigger = *past;
    }
    place.in_start = std::max(place.in_start, std::max(gone, finish(place.trigger)));
    place.in_start = in_.channel.first_slot(place.in_start, pair.in_time);
    place.away_from = begins(place.freed_at);
    place.away_until = ends(place.trigger);
    place.late = std::max(gone - start(place.freed_at), 0ns) +
                 std::max(place.in_start + pair.in_time - pair.idle_until, 0ns);
    return place;
  }

  /// Returns the first task behind `evicted` on its lane that starts once the block is gone and, if
  /// `called`, has a launch call.
  TaskId first_from(TaskId evicted, Nanoseconds gone, bool called) const {
    const Line& line = line_of(evicted);
    const auto behind = std::lower_bound(line.finishes.begin(), line.finishes.end(), gone);
    auto i = static_cast<std::size_t>(behind - line.finishes.begin());
    for (i = std::max<std::size_t>(i, positions_[index(evicted)] + 1); i < line.tasks.size(); ++i) {
      const TaskId task = line.tasks[i];
      if (start(task) >= gone && (!called || launches_.launch_of(task) != kNoTask)) return task;
    }
    return kNoTask;
  }

  /// Returns the last task before `back` on its lane that is done by `in_start`.
  TaskId last_until(TaskId back, Nanoseconds in_start) const {
    const Line& line = line_of(back);
    const auto behind = std::upper_bound(line.finishes.begin(), line.finishes.end(), in_start);
    auto i = static_cast<std::size_t>(behind - line.finishes.begin());
    i = std::min<std::size_t>(i, positions_[index(back)]);
    return i == 0 ? kNoTask : line.tasks[i - 1];
  }

  Nanoseconds call_finish(TaskId task) const {
    const TaskId call = launches_.launch_of(task);
    return call == kNoTask ? finish(task) : finish(call);
  }

  void settle(const Pair& pair, Place& place, Nanoseconds gone) const {
    const bool calls = freed_by_calls(graph_, graph_.allocations()[pair.allocation]);
    place.away_from = gone, place.away_until = place.in_start;
    if (!calls) {
      // The copy in starts with the task it waits for, which may be earlier than necessary.
      if (place.trigger != kNoTask) place.away_until = std::max(gone, finish(place.trigger));
      place.freed_at = kNoTask;
      return;
    }
    place.away_from = place.freed_at == kNoTask ? Nanoseconds::max() : call_start(place.freed_at);
    place.away_until = place.trigger == kNoTask ? Nanoseconds::min() : call_finish(place.trigger);
  }

  void take(LoadCurve& curve, Pair& pair, const Place& place, bool hidden) {
    pair.dead = true;
    curve.lower(place.away_from, place.away_until, graph_.allocations()[pair.allocation].bytes);
    out_.channel.take(place.out_start, place.out_start + pair.out_time);
    in_.channel.take(place.in_start, place.in_start + pair.in_time);
    Swap swap{.allocation = pair.allocation,
              .out_after = pair.evicted,
              .freed_at = place.freed_at,
              .trigger = place.trigger,
              .back = pair.back};
    swap.out_start = place.out_start, swap.in_start = place.in_start;
    swap.hidden = hidden;
    if (hidden) {
      swap.out_behind = last_before(out_, pair.idle_from, place.out_start);
      const Nanoseconds settled =
          place.trigger == kNoTask ? Nanoseconds::min() : finish(place.trigger);
      swap.in_behind = last_before(in_, settled, place.in_start);
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
  std::vector<Line> lines_;
  Copies out_, in_;  ///< Copies of the device that is planned.
  SwapPlan plan_;
};

}  // namespace

SwapPlan plan_by_interval(const Graph& graph, const Timeline& timeline, const Launches& launches,
                          const SwapLink& link, const IntervalSettings& settings) {
  return IntervalPlanner(graph, timeline, launches, link, settings).plan();
}

}  // namespace foretrace
