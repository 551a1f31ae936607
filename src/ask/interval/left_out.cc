// Checks that intervals are as reliable as they claim: each recorded step in turn is treated as
// unknown, so that neither its work nor its time counts, and the interval of all others should
// contain its time.

#include "ask/interval/interval.h"
#include "ask/interval/resample.h"
#include "ask/job/job_graph.h"
#include "base/statistics.h"
#include "foretrace/ask/pairs.h"

namespace foretrace {
namespace {

/// Times of the steady steps, except one.
std::vector<Nanoseconds> other_step_times(const StepTimes& measured, std::size_t left_out) {
  std::vector<Nanoseconds> times;
  for (std::size_t i = measured.first; i < measured.each.size(); ++i) {
    if (i != left_out) times.push_back(measured.each[i]);
  }
  return times;
}

}  // namespace

LeftOutSteps left_out_steps(const Inference& inference) {
  LeftOutSteps found;
  const StepTimes measured = step_times(inference.graph, inference.recorded);
  if (measured.period > 1) return found;  // Other steps say nothing about a step of another kind.
  const StepVariation variation(inference);
  if (variation.donors().size() < 3 || !all_lanes_fifo(inference.graph)) return found;
  for (const std::size_t step : variation.donors()) {
    const std::vector<Nanoseconds> rest = other_step_times(measured, step);
    if (step >= measured.each.size() || rest.size() < 2) continue;
    const Resampled drawn =
        resample(variation, inference.graph, inference.graph, {.seed = 1, .leave_out = {step}});
    const Nanoseconds point = median(rest);
    const Interval interval = interval_of({.point = point,
                                           .times = recentered(drawn, point),
                                           .recorded_steps = drawn.donors,
                                           .resamples = drawn.resamples});
    ++found.steps;
    if (interval.lower <= measured.each[step] && measured.each[step] <= interval.upper)
      ++found.inside;
  }
  return found;
}

}  // namespace foretrace
