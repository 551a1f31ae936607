#include "ask/advise/bounds.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "ask/interval/resample.h"
#include "ask/job/step_cost.h"
#include "base/numbers/scaling.h"
#include "base/threads.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// The lane with the most work, which bounds a step when nothing waits.
struct BusiestLane {
  Nanoseconds work{0};
  PathPart part = PathPart::kernels;
};

PathPart part_of_lane(LaneKind kind) {
  switch (kind) {
    case LaneKind::host_thread:
      return PathPart::host;
    case LaneKind::copy_engine:
      return PathPart::copies;
    case LaneKind::worker:
    case LaneKind::storage:
      return PathPart::input;
    case LaneKind::link:
      return PathPart::communication;
    case LaneKind::stream:
    case LaneKind::origin:
      break;
  }
  return PathPart::kernels;
}

double share_left(const Task& before, const Task& after) {
  return ratio(after.duration, before.duration);
}

/// How long a lane would run without any waits: its work in the window of steady steps, with the
/// durations of `edited`. Where tasks overlap, the time counts once.
Nanoseconds busy_time(const Graph& graph, const Timeline& timeline, const Graph& edited,
                      LaneId lane, const StepWindow& window) {
  Nanoseconds busy{0}, until{Nanoseconds::min()};
  for (TaskId id = graph.first(lane); id != kNoTask; id = graph.next(id)) {
    const Nanoseconds begin = std::max(timeline.start[index(id)], until);
    const Nanoseconds end = timeline.finish[index(id)];
    const Nanoseconds within = std::min(end, window.to) - std::max(begin, window.from);
    busy += scaled(std::max(0ns, within), share_left(graph.task(id), edited.task(id)));
    until = std::max(until, end);
  }
  return busy;
}

BusiestLane busiest_lane(const Graph& graph, const Timeline& timeline, const Graph& edited,
                         Nanoseconds now) {
  const StepWindow window = step_window(graph, timeline);
  BusiestLane busiest;
  if (window.to <= window.from) return busiest;
  // The steps in the window may be longer or shorter than the typical step.
  const double step = ratio(now, window.steps * window.times.mean);
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Nanoseconds work = scaled(busy_time(graph, timeline, edited, LaneId{i}, window), step);
    if (work > busiest.work) busiest = {work, part_of_lane(graph.lane(LaneId{i}).kind)};
  }
  return busiest;
}

AdviceCeiling replayed_ceiling(const Graph& graph, const WorkGroup& group, Nanoseconds now) {
  AdviceCeiling ceiling{.name = group.name,
                        .title = group.title,
                        .assumes = group.assumes,
                        .is_present = group.has_work,
                        .step_time = now};
  if (!group.has_work) return ceiling;
  Graph edited = graph.clone();
  scale_work(edited, group, 0);
  const Timeline timeline = simulate(edited, {.reasons = true, .memory = false});
  ceiling.step_time = std::min(now, step_times(edited, timeline).step_time);
  ceiling.bound = path_shares(edited, timeline).largest();
  return ceiling;
}

AdviceCeiling overlap_ceiling(const Graph& graph, const Timeline& timeline, Nanoseconds now) {
  const BusiestLane busiest = busiest_lane(graph, timeline, graph, now);
  return {.name = "overlap",
          .title = "waiting of any kind",
          .assumes =
              "each thread and stream does its work without a pause: only the busiest one counts",
          .step_time = std::min(now, busiest.work),
          .bound = busiest.part};
}

AdviceCeiling joint_ceiling(const Graph& graph, const Timeline& timeline,
                            const std::vector<WorkGroup>& groups, Nanoseconds now) {
  Graph edited = graph.clone();
  for (const WorkGroup& group : groups) scale_work(edited, group, 0);
  return {.name = "all",
          .title = "all of these",
          .assumes =
              "only kernels are left, unchanged: those of the busiest stream one after the other",
          .step_time = std::min(now, busiest_lane(graph, timeline, edited, now).work),
          .bound = PathPart::kernels};
}

constexpr int kHalvings = 24;
/// Smallest factor that is distinguished from 0, where the work takes no time.
constexpr double kPrecision = 1e-4;
/// Work this many times as fast takes next to no time.
constexpr double kFastest = 100;

/// How long a step takes with the work of a group scaled by a factor.
using TimeWith = std::function<Nanoseconds(double)>;

/// Greatest factor of the work for which a step takes no longer than `target`, by bisection; 0 if
/// only removing all the work is enough.
double factor_for(const TimeWith& time_with, Nanoseconds target, double precision) {
  double low = 0, high = 1;
  for (int i = 0; i < kHalvings && high - low > precision * std::max(low, precision); ++i) {
    const double middle = low + (high - low) / 2;
    (time_with(middle) <= target ? low : high) = middle;
  }
  return low;
}

/// See speed_needed(). `shortest` is the step time with the work scaled to 0.
std::optional<double> speed_for(const WorkGroup& group, const TimeWith& time_with,
                                Nanoseconds target, Nanoseconds shortest) {
  if (time_with(1) <= target) return 1;
  if (!group.has_work || shortest > target) return std::nullopt;
  if (!group.graded()) return 0;
  const double factor = factor_for(time_with, target, kPrecision);
  return factor > kPrecision ? std::optional(1 / factor) : std::optional(0.0);
}

/// Share of a step: a speed that comes this close to the best gain is enough.
constexpr double kRest = 0.01;

/// `time_with` belongs to `group`; it is only called with factors above 0.
SpeedUp speed_up_of(const Graph& graph, const WorkGroup& group, const TimeWith& time_with,
                    Nanoseconds now, std::optional<Nanoseconds> target) {
  SpeedUp found{.name = group.name,
                .title = group.title,
                .graded = group.graded(),
                .work = work_of(graph, group),
                .needed = {}};
  Graph edited = graph.clone();
  scale_work(edited, group, 0);
  const Timeline timeline = simulate(edited, {.reasons = true, .memory = false});
  const Nanoseconds shortest = step_times(edited, timeline).step_time;
  found.at_best = std::min(now, shortest);
  found.bound_by = path_shares(edited, timeline).largest();
  if (group.graded() && found.at_best < now) {
    constexpr double kRough = 0.02;
    const double factor = factor_for(time_with, found.at_best + scaled(now, kRest), kRough);
    if (factor > 1 / kFastest) found.enough = 1 / factor;
  }
  if (target) found.needed = speed_for(group, time_with, *target, shortest);
  return found;
}

/// A factor above 0 only changes durations, so a compiled graph can answer. `retimed` is nullptr if
/// the graph has no compiled form.
TimeWith time_with(const Graph& graph, const WorkGroup& group, const RetimedReplay* retimed) {
  if (retimed == nullptr || !group.graded())
    return [&](double factor) { return step_with(graph, group, factor); };
  return [&graph, &group, compiled = std::make_shared<RetimedReplay>(retimed->clone())](
             double factor) { return compiled->step_time(retiming_of(graph, group, factor)); };
}

}  // namespace

Nanoseconds step_with(const Graph& graph, const WorkGroup& group, double factor) {
  Graph edited = graph.clone();
  scale_work(edited, group, factor);
  return replayed_step_time(edited);
}

std::vector<AdviceCeiling> ladder_of(const Graph& graph, Nanoseconds now) {
  const std::vector<WorkGroup> groups = ladder_groups(graph);
  const Timeline timeline = simulate(graph, {.reasons = false, .memory = false});
  std::vector<AdviceCeiling> ceilings(groups.size() + 2);
  on_all_cores(ceilings.size(), [&](std::size_t i) {
    if (i < groups.size()) ceilings[i] = replayed_ceiling(graph, groups[i], now);
    if (i == groups.size()) ceilings[i] = overlap_ceiling(graph, timeline, now);
    if (i == groups.size() + 1) ceilings[i] = joint_ceiling(graph, timeline, groups, now);
  });
  for (AdviceCeiling& ceiling : ceilings)
    ceiling.step_time = std::max(ceiling.step_time, ceilings.back().step_time);
  return ceilings;
}

std::optional<double> speed_needed(const Graph& graph, const WorkGroup& group, Nanoseconds target) {
  return speed_for(group, time_with(graph, group, nullptr), target, step_with(graph, group, 0));
}

std::vector<SpeedUp> speed_ups_of(const Graph& graph, const std::vector<WorkGroup>& groups,
                                  Nanoseconds now, std::optional<Nanoseconds> target) {
  std::vector<WorkGroup> present;
  std::copy_if(groups.begin(), groups.end(), std::back_inserter(present),
               [](const WorkGroup& group) { return group.has_work; });
  std::optional<RetimedReplay> retimed;
  if (all_lanes_fifo(graph)) retimed.emplace(graph);
  std::vector<SpeedUp> found(present.size());
  on_all_cores(present.size(), [&](std::size_t i) {
    const WorkGroup& group = present[i];
    found[i] = speed_up_of(graph, group, time_with(graph, group, retimed ? &*retimed : nullptr),
                           now, target);
  });
  for (SpeedUp& part : found) {
    for (const SpeedUp& whole : found) {
      if (part.name.starts_with(whole.name + "."))
        part.at_best = std::max(part.at_best, whole.at_best);
    }
  }
  return found;
}

}  // namespace foretrace
