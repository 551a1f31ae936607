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
struct Busiest {
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

Busiest busiest_lane(const Graph& graph, const Timeline& timeline, const Graph& edited,
                     Nanoseconds now) {
  const StepWindow window = step_window(graph, timeline);
  Busiest busiest;
  if (window.to <= window.from) return busiest;
  // The steps in the window may be longer or shorter than the typical step.
  const double step = ratio(now, window.steps * window.times.mean);
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Nanoseconds work = scaled(busy_time(graph, timeline, edited, LaneId{i}, window), step);
    if (work > busiest.work) busiest = {work, part_of_lane(graph.lane(LaneId{i}).kind)};
  }
  return busiest;
}

Rung replayed_rung(const Graph& graph, const Lever& lever, Nanoseconds now) {
  Rung rung{.name = lever.name,
            .title = lever.title,
            .assumes = lever.assumes,
            .there = lever.there,
            .step_time = now};
  if (!lever.there) return rung;
  Graph edited = graph.clone();
  pull(edited, lever, 0);
  const Timeline timeline = simulate(edited, {.reasons = true, .memory = false});
  rung.step_time = std::min(now, step_times(edited, timeline).step_time);
  rung.bound = path_shares(edited, timeline).largest();
  return rung;
}

Rung overlap_rung(const Graph& graph, const Timeline& timeline, Nanoseconds now) {
  const Busiest busiest = busiest_lane(graph, timeline, graph, now);
  return {.name = "overlap",
          .title = "waiting of any kind",
          .assumes =
              "each thread and stream does its work without a pause: only the busiest one counts",
          .step_time = std::min(now, busiest.work),
          .bound = busiest.part};
}

Rung last_rung(const Graph& graph, const Timeline& timeline, const std::vector<Lever>& levers,
               Nanoseconds now) {
  Graph edited = graph.clone();
  for (const Lever& lever : levers) pull(edited, lever, 0);
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

/// How long a step takes with a lever pulled to a factor.
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

/// See speed_needed(). `shortest` is the step time with the lever pulled to 0.
std::optional<double> speed_for(const Lever& lever, const TimeWith& time_with, Nanoseconds target,
                                Nanoseconds shortest) {
  if (time_with(1) <= target) return 1;
  if (!lever.there || shortest > target) return std::nullopt;
  if (!lever.graded()) return 0;
  const double factor = factor_for(time_with, target, kPrecision);
  return factor > kPrecision ? std::optional(1 / factor) : std::optional(0.0);
}

/// Share of a step: a speed that comes this close to the best gain is enough.
constexpr double kRest = 0.01;

/// `time_with` belongs to `lever`; it is only called with factors above 0.
SpeedUp measured(const Graph& graph, const Lever& lever, const TimeWith& time_with, Nanoseconds now,
                 std::optional<Nanoseconds> target) {
  SpeedUp found{.name = lever.name,
                .title = lever.title,
                .graded = lever.graded(),
                .work = work_of(graph, lever),
                .needed = {}};
  Graph edited = graph.clone();
  pull(edited, lever, 0);
  const Timeline timeline = simulate(edited, {.reasons = true, .memory = false});
  const Nanoseconds shortest = step_times(edited, timeline).step_time;
  found.at_best = std::min(now, shortest);
  found.then = path_shares(edited, timeline).largest();
  if (lever.graded() && found.at_best < now) {
    constexpr double kRough = 0.02;
    const double factor = factor_for(time_with, found.at_best + scaled(now, kRest), kRough);
    if (factor > 1 / kFastest) found.enough = 1 / factor;
  }
  if (target) found.needed = speed_for(lever, time_with, *target, shortest);
  return found;
}

/// A lever pulled part of the way only changes durations, so a compiled graph can answer. `retimed`
/// is nullptr if the graph has no compiled form.
TimeWith time_with(const Graph& graph, const Lever& lever, const Retimed* retimed) {
  if (retimed == nullptr || !lever.graded())
    return [&](double factor) { return step_with(graph, lever, factor); };
  return [&graph, &lever, own = std::make_shared<Retimed>(retimed->clone())](double factor) {
    return own->step_time(retiming_of(graph, lever, factor));
  };
}

}  // namespace

Nanoseconds step_with(const Graph& graph, const Lever& lever, double factor) {
  Graph edited = graph.clone();
  pull(edited, lever, factor);
  return replayed_step_time(edited);
}

std::vector<Rung> ladder_of(const Graph& graph, Nanoseconds now) {
  const std::vector<Lever> levers = ladder_levers(graph);
  const Timeline timeline = simulate(graph, {.reasons = false, .memory = false});
  std::vector<Rung> rungs(levers.size() + 2);
  on_all_cores(rungs.size(), [&](std::size_t i) {
    if (i < levers.size()) rungs[i] = replayed_rung(graph, levers[i], now);
    if (i == levers.size()) rungs[i] = overlap_rung(graph, timeline, now);
    if (i == levers.size() + 1) rungs[i] = last_rung(graph, timeline, levers, now);
  });
  for (Rung& rung : rungs) rung.step_time = std::max(rung.step_time, rungs.back().step_time);
  return rungs;
}

std::optional<double> speed_needed(const Graph& graph, const Lever& lever, Nanoseconds target) {
  return speed_for(lever, time_with(graph, lever, nullptr), target, step_with(graph, lever, 0));
}

std::vector<SpeedUp> speed_ups_of(const Graph& graph, const std::vector<Lever>& levers,
                                  Nanoseconds now, std::optional<Nanoseconds> target) {
  std::vector<Lever> there;
  std::copy_if(levers.begin(), levers.end(), std::back_inserter(there),
               [](const Lever& lever) { return lever.there; });
  std::optional<Retimed> retimed;
  if (all_lanes_fifo(graph)) retimed.emplace(graph);
  std::vector<SpeedUp> found(there.size());
  on_all_cores(there.size(), [&](std::size_t i) {
    const Lever& lever = there[i];
    found[i] =
        measured(graph, lever, time_with(graph, lever, retimed ? &*retimed : nullptr), now, target);
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
