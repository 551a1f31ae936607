// PipeDream-2BW (Narayanan et al. 2021, arXiv 2006.09503), section 4: w copies of a pipeline of d
// equal stages, micro-batches of b samples, m = B / (w b) >= d of them in a batch B. Stages keep
// two versions of the weights and never flush:
//
//     t = max over stages of max(passes + sends, sum of gradients / m),   a step takes m t
//     passes are 4/3 as long where activations are recomputed
//
// Replicas of a stage are neighbors, so that sums of gradients stay inside a node if possible.

#include <algorithm>
#include <limits>

#include "foretrace/error.h"
#include "plan/strategies/registered.h"

namespace foretrace {
namespace {

constexpr double kRecomputed = 4. / 3;

class EqualStages {
 public:
  EqualStages(const StrategyProblem& problem, const LayerCosts& layers, std::int64_t size)
      : problem_(problem), layers_(layers), size_(size) {}

  /// Returns the better of `plan` and the plan of this width and depth.
  StrategyPlan better_plan(StrategyPlan plan, std::int64_t width, std::int64_t depth) const {
    const std::int64_t samples = width * size_;
    if (static_cast<std::size_t>(depth) > layers_.size() || problem_.global_batch % samples != 0)
      return plan;
    const std::int64_t m = problem_.global_batch / samples;
    if (depth > 1 && m < depth) return plan;
    for (const bool recomputes : {false, true}) {
      StrategyPlan one{.micro_batch = size_, .schedule = "pipedream_2bw"};
      one.recomputes = recomputes, one.stages = even_stages(layers_.size(), depth);
      double slowest = 0;
      bool fits = true;
      for (StrategyStage& stage : one.stages) {
        stage.replicas = width;
        stage.us = stage_us(stage, depth, m, recomputes);
        slowest = std::max(slowest, stage.us);
        fits = fits && needed_bytes(stage, depth, recomputes) <= problem_.memory;
      }
      one.us = slowest * static_cast<double>(m);
      if (fits && one.us < plan.us) plan = one;
    }
    return plan;
  }

 private:
  double stage_us(const StrategyStage& stage, std::int64_t depth, std::int64_t m,
                  bool recomputes) const {
    const LayerCost cost = layers_.of(stage.begin, stage.end);
    const double passes = (cost.forward + cost.backward) * (recomputes ? kRecomputed : 1);
    const double rate = problem_.rate(depth > 1 ? problem_.devices : 1);
    double sends = 0;
    if (stage.begin > 0) sends += 2 * layers_.of(stage.begin - 1, stage.begin).output / rate;
    if (stage.end < layers_.size()) sends += 2 * cost.output / rate;
    const double sum =
        pipedream_sum(cost.exchanged, stage.replicas, problem_.rate(stage.replicas)) /
        static_cast<double>(m);
    return std::max(passes + sends, sum);
  }

  /// Uses the stage's own layers in the form of two_versions_memory().
  double needed_bytes(const StrategyStage& stage, std::int64_t depth, bool recomputes) const {
    const LayerCost cost = layers_.of(stage.begin, stage.end);
    const auto d = static_cast<double>(depth);
    const double input =
        stage.begin > 0 ? layers_.of(stage.begin - 1, stage.begin).output : cost.output;
    const double versions = depth > 1 ? 1 : .5;
    return cost.state +
           two_versions_memory(versions * cost.weights * d, cost.kept * d, input, d, recomputes);
  }

  const StrategyProblem& problem_;
  LayerSums layers_;
  std::int64_t size_;
};

}  // namespace

double two_versions_memory(double weights, double activations, double input, double depth,
                           bool recomputes) {
  return 2 * weights / depth + activations / depth * (recomputes ? 1 : depth) + depth * input;
}

StrategyPlan plan_by_pipedream_2bw(const StrategyProblem& problem) {
  StrategyPlan plan;
  plan.us = std::numeric_limits<double>::infinity();
  for (const std::int64_t size : problem.sizes) {
    const EqualStages equal(problem, problem.layers(size), size);
    for (std::int64_t depth = 1; depth <= problem.devices; ++depth) {
      if (problem.devices % depth == 0)
        plan = equal.better_plan(std::move(plan), problem.devices / depth, depth);
    }
  }
  if (plan.stages.empty())
    throw Error(
        "--strategy pipedream_2bw: no depth and micro-batch fit the memory of the devices with "
        "at least as many micro-batches as stages");
  return plan;
}

}  // namespace foretrace
