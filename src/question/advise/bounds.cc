#include "question/advise/bounds.h"

#include <algorithm>
#include <functional>
#include <memory>

#include "base/numbers/scaling.h"
#include "base/threads.h"
#include "foretrace/simulate.h"
#include "job/job_graph.h"
#include "job/step_cost.h"

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

/// How long a lane of `edited` would run without any waits, of any lane of a rank of the job.
/// `timeline` is the replay of the unchanged graph.
BusiestLane busiest_lane(const JobGraph& job, const Timeline& timeline, const Graph& edited) {
  BusiestLane busiest;
  const auto consider = [&](const JobGraph::RankReplay& rank, Nanoseconds begins) {
    StepWindow window = step_window(rank.graph, rank.timeline);
    if (window.to <= window.from) return;
    // The steps in the window may be longer or shorter than the typical step.
    const double step = ratio(window.times.step_time, window.steps * window.times.mean);
    window.from += begins, window.to += begins;
    for (std::uint32_t i = rank.first_lane; i < rank.end_lane; ++i) {
      const LaneId lane{i};
      const Nanoseconds work = scaled(busy_time(job.graph(), timeline, edited, lane, window), step);
      if (work > busiest.work) busiest = {work, part_of_lane(edited.lane(lane).kind)};
    }
  };
  for (std::size_t i = 0; i < job.rank_count(); ++i)
    job.visit_rank(i, job.graph(), timeline,
                   [&](const auto& rank) { consider(rank, job.begins(i)); });
  return busiest;
}

/// The step with the work of the groups scaled by `factor`.
JobGraph::Step step_of(const JobGraph& job, std::span<const WorkGroup> groups, double factor,
                       bool reasons) {
  Graph edited = job.graph().clone();
  for (const WorkGroup& group : groups) scale_work(edited, group, factor);
  return job.step(edited, simulate(edited, {.reasons = reasons, .memory = false}));
}

AdviceCeiling replayed_ceiling(const JobGraph& job, const WorkGroup& group, Nanoseconds now) {
  AdviceCeiling ceiling{.name = group.name,
                        .title = group.title,
                        .assumes = group.assumes,
                        .is_present = group.has_work,
                        .step_time = now};
  if (!group.has_work) return ceiling;
  const JobGraph::Step without = step_of(job, {&group, 1}, 0, true);
  ceiling.step_time = std::min(now, without.time);
  ceiling.bound = without.path.largest();
  return ceiling;
}

AdviceCeiling overlap_ceiling(const JobGraph& job, const Timeline& timeline, Nanoseconds now) {
  const BusiestLane busiest = busiest_lane(job, timeline, job.graph());
  return {.name = "overlap",
          .title = "waiting of any kind",
          .assumes =
              "each thread and stream does its work without a pause: only the busiest one counts",
          .step_time = std::min(now, busiest.work),
          .bound = busiest.part};
}

AdviceCeiling joint_ceiling(const JobGraph& job, const Timeline& timeline,
                            const std::vector<WorkGroup>& groups, Nanoseconds now) {
  Graph edited = job.graph().clone();
  for (const WorkGroup& group : groups) scale_work(edited, group, 0);
  return {.name = "all",
          .title = "all of these",
          .assumes =
              "only kernels are left, unchanged: those of the busiest stream one after the other",
          .step_time = std::min(now, busiest_lane(job, timeline, edited).work),
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

/// How many times as fast a group's work must be for a step to take no longer than `target`, by
/// bisection. Returns nullopt if no speed is enough, 1 if the target is met already, and 0 if the
/// work would have to take almost no time or cannot be sped up in part. `shortest` is the step time
/// with the work scaled to 0.
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
SpeedUp speed_up_of(const JobGraph& job, const WorkGroup& group, const TimeWith& time_with,
                    Nanoseconds now, std::optional<Nanoseconds> target) {
  SpeedUp found{.name = group.name,
                .title = group.title,
                .graded = group.graded(),
                .work = work_of(job, group),
                .needed = {}};
  const JobGraph::Step without = step_of(job, {&group, 1}, 0, true);
  found.at_best = std::min(now, without.time);
  found.bound_by = without.path.largest();
  if (group.graded() && found.at_best < now) {
    constexpr double kRough = 0.02;
    const double factor = factor_for(time_with, found.at_best + scaled(now, kRest), kRough);
    if (factor > 1 / kFastest) found.enough = 1 / factor;
  }
  if (target) found.needed = speed_for(group, time_with, *target, without.time);
  return found;
}

/// A factor above 0 only changes durations, so a compiled graph can answer. `retimed` is nullptr if
/// the graph has no compiled form.
TimeWith time_with(const JobGraph& job, const WorkGroup& group, const RetimedReplay* retimed) {
  if (retimed == nullptr || !group.graded())
    return [&](double factor) { return step_with(job, group, factor); };
  return
      [&job, &group, compiled = std::make_shared<RetimedReplay>(retimed->clone())](double factor) {
        return compiled->step_time(retiming_of(job.graph(), group, factor));
      };
}

}  // namespace

Nanoseconds step_with(const JobGraph& job, std::span<const WorkGroup> groups, double factor) {
  return step_of(job, groups, factor, false).time;
}

Nanoseconds step_with(const JobGraph& job, const WorkGroup& group, double factor) {
  return step_with(job, {&group, 1}, factor);
}

std::vector<AdviceCeiling> ladder_of(const JobGraph& job, Nanoseconds now) {
  const std::vector<WorkGroup> groups = ladder_groups(job.graph());
  const Timeline timeline = simulate(job.graph(), {.reasons = false, .memory = false});
  std::vector<AdviceCeiling> ceilings(groups.size() + 2);
  on_all_cores(ceilings.size(), [&](std::size_t i) {
    if (i < groups.size()) ceilings[i] = replayed_ceiling(job, groups[i], now);
    if (i == groups.size()) ceilings[i] = overlap_ceiling(job, timeline, now);
    if (i == groups.size() + 1) ceilings[i] = joint_ceiling(job, timeline, groups, now);
  });
  for (AdviceCeiling& ceiling : ceilings)
    ceiling.step_time = std::max(ceiling.step_time, ceilings.back().step_time);
  return ceilings;
}

StepBound bound_of(const std::vector<AdviceCeiling>& ladder, const std::vector<SpeedUp>& speed_ups,
                   PathPart largest, Nanoseconds now) {
  constexpr std::pair<std::string_view, PathPart> kParts[] = {
      {"host", PathPart::host},
      {"input", PathPart::input},
      {"copies", PathPart::copies},
      {"communication", PathPart::communication}};
  StepBound least{largest, now, largest};
  for (const SpeedUp& one : speed_ups) {
    if (one.name == "kernels") least = {PathPart::kernels, one.at_best, one.bound_by};
  }
  for (const auto& [name, part] : kParts) {
    for (const AdviceCeiling& ceiling : ladder) {
      if (ceiling.name == name && ceiling.is_present && ceiling.step_time < least.without)
        least = {part, ceiling.step_time, ceiling.bound};
    }
  }
  return least;
}

std::vector<SpeedUp> speed_ups_of(const JobGraph& job, const std::vector<WorkGroup>& groups,
                                  Nanoseconds now, std::optional<Nanoseconds> target) {
  std::vector<WorkGroup> present;
  std::copy_if(groups.begin(), groups.end(), std::back_inserter(present),
               [](const WorkGroup& group) { return group.has_work; });
  std::optional<RetimedReplay> retimed;
  if (all_lanes_fifo(job.graph())) retimed.emplace(job);
  std::vector<SpeedUp> found(present.size());
  on_all_cores(present.size(), [&](std::size_t i) {
    const WorkGroup& group = present[i];
    found[i] =
        speed_up_of(job, group, time_with(job, group, retimed ? &*retimed : nullptr), now, target);
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
