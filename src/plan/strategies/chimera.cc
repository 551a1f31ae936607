// Chimera's choice (Li, Hoefler 2021, arXiv 2107.06925, section 3.4): W copies of bidirectional
// pipelines of even depth D on P = W D devices. For each pair (W, D) it takes the largest
// micro-batch that fits, and among the pairs the fastest by its equation 1, with N = K D
// micro-batches of a worker in a batch:
//
//     T   = (F + c) C_F + (B + c) C_B + max_s unhidden(s)
//     C_F = D + 2 (K - 1),  C_B = K (2 D - 2),  c = alpha + beta output
//     unhidden(s) = max(0, 2 log2(r) alpha + 2 (r-1)/r beta gradients_s - s B),  r = 2 W
//
// The critical path is that of units in sequence. The last backward pass of stage s ends s backward
// slots before the end, when the sum of its gradients can begin. A worker has two stages and at
// most D micro-batches in flight; with recomputation, backward passes take one forward pass longer.

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretrace/error.h"
#include "plan/strategies/registered.h"

namespace foretrace {
namespace {

class Bidirectional {
 public:
  Bidirectional(const StrategyProblem& problem, LayerCosts layers, std::int64_t size)
      : problem_(problem), layers_(layers), costs_(std::move(layers)), size_(size) {}

  /// Returns the plan of this depth; a plan without stages if it does not fit or divide.
  StrategyPlan plan(std::int64_t depth, bool recomputes) const {
    const std::int64_t width = problem_.devices / depth, samples = width * size_ * depth;
    if (problem_.global_batch % samples != 0 || static_cast<std::size_t>(depth) > layers_.size())
      return {};
    StrategyPlan plan{.micro_batch = size_, .schedule = "chimera"};
    plan.recomputes = recomputes, plan.stages = even_stages(layers_.size(), depth);
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      const StrategyStage& other = plan.stages[plan.stages.size() - 1 - i];
      if (needed_bytes(plan.stages[i], other, depth, recomputes) > problem_.memory) return {};
    }
    time(width, depth, plan);
    return plan;
  }

 private:
  /// A worker holds one stage of each direction.
  double needed_bytes(const StrategyStage& one, const StrategyStage& other, std::int64_t depth,
                      bool recomputes) const {
    double bytes = 0, kept = 0;
    for (const StrategyStage* stage : {&one, &other}) {
      const LayerCost cost = layers_.of(stage->begin, stage->end);
      bytes += cost.state + cost.weights;
      double input = cost.kept, largest = 0;
      if (recomputes) {
        input = stage->begin > 0 ? costs_[stage->begin - 1].output : 0;
        for (std::size_t i = stage->begin; i < stage->end; ++i)
          largest = std::max(largest, costs_[i].kept);
      }
      kept = std::max(kept, input * static_cast<double>(depth) + largest);
    }
    return bytes + kept;
  }

  void time(std::int64_t width, std::int64_t depth, StrategyPlan& plan) const {
    const double d = static_cast<double>(depth), r = 2 * static_cast<double>(width);
    const double units = static_cast<double>(problem_.global_batch / (width * size_ * depth));
    double forward = 0, backward = 0, output = 0, unhidden = 0;
    for (StrategyStage& stage : plan.stages) {
      const LayerCost cost = layers_.of(stage.begin, stage.end);
      const double back = cost.backward + (plan.recomputes ? cost.forward : 0);
      stage.replicas = width, stage.us = cost.forward + back;
      forward = std::max(forward, cost.forward), backward = std::max(backward, back);
      if (stage.end < layers_.size()) output = std::max(output, cost.output);
    }
    // The replicas of a stage lie in one pipeline, so that their sums cross nodes as the pipeline
    // does.
    const double rate = problem_.rate(problem_.devices);
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const double bytes = layers_.of(plan.stages[s].begin, plan.stages[s].end).exchanged;
      const double sum = 2 * std::log2(r) * problem_.latency + ring_sum(bytes, 2 * width, rate);
      unhidden = std::max(unhidden, sum - static_cast<double>(s) * backward);
    }
    const double send = problem_.latency + output / rate;
    plan.us = (forward + send) * (d + 2 * (units - 1)) + (backward + send) * units * (2 * d - 2) +
              unhidden;
  }

  const StrategyProblem& problem_;
  LayerSums layers_;
  LayerCosts costs_;
  std::int64_t size_;
};

}  // namespace

StrategyPlan plan_by_chimera(const StrategyProblem& problem) {
  std::vector<Bidirectional> by_size;
  for (const std::int64_t size : problem.sizes)
    by_size.emplace_back(problem, problem.layers(size), size);
  StrategyPlan best;
  for (std::int64_t depth = 2; depth <= problem.devices; depth += 2) {
    if (problem.devices % depth != 0) continue;
    StrategyPlan largest;
    for (const bool recomputes : {false, true}) {
      for (auto one = by_size.rbegin(); one != by_size.rend() && largest.stages.empty(); ++one)
        largest = one->plan(depth, recomputes);
    }
    if (!largest.stages.empty() && (best.stages.empty() || largest.us < best.us))
      best = std::move(largest);
  }
  if (best.stages.empty())
    throw Error(
        "--strategy chimera: no even depth and micro-batch fit the memory of the devices with a "
        "number of micro-batches that is a multiple of the depth");
  return best;
}

}  // namespace foretrace
