#pragma once

// Published planners of pipelines: one file each in strategies/, one line in strategies.def. Each
// has its own model of a step, which is simpler than the replay: what they choose is priced again
// where it is a layout.
//
//     layers of one device --strategy--> stages | micro-batch | copies | schedule
//
// Times are microseconds, sizes bytes and rates bytes a microsecond.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace foretrace {

/// One layer on one device, for one micro-batch.
struct LayerCost {
  std::string name{};
  double forward = 0, backward = 0;
  double output = 0;     ///< Passed to the next layer.
  double weights = 0;    ///< One version.
  double state = 0;      ///< Gradients and optimizer.
  double exchanged = 0;  ///< Gradients that copies of a stage sum.
  double kept = 0;       ///< For the backward pass.
};
using LayerCosts = std::vector<LayerCost>;

struct StrategyProblem {
  /// For micro-batches of so many samples; of one size always the same. May be slow.
  std::function<LayerCosts(std::int64_t micro_batch)> layers{};
  std::vector<std::int64_t> sizes{1};  ///< Of micro-batches to choose from, ascending.
  std::int64_t devices = 1, per_node = 1;
  std::int64_t global_batch = 1;  ///< Samples.
  double within = 1, across = 1;  ///< Rates of a device, in its node and to others.
  double latency = 0;
  double memory = 0;  ///< Of a device.

  /// Between neighbors of a group of so many devices.
  double rate(std::int64_t group) const { return group <= per_node ? within : across; }
};

struct StrategyStage {
  std::size_t begin = 0, end = 0;  ///< Layers; `end` is behind the last.
  std::int64_t replicas = 1;
  double us = 0;  ///< A micro-batch takes so long, all replicas at work.
};

struct StrategyPlan {
  std::vector<StrategyStage> stages{};
  std::int64_t micro_batch = 1;  ///< Samples.
  bool is_shared = false;        ///< Replicas share each micro-batch, instead of taking turns.
  std::string schedule{};
  bool recomputes = false;
  double us = 0;  ///< A step on the global batch, by the strategy's own model.
};

struct Strategy {
  std::string_view name, summary;
  /// Throws Error where nothing fits. nullptr: plan_layouts().
  StrategyPlan (*plan)(const StrategyProblem& problem);
};
/// The exhaustive search comes first.
const std::vector<Strategy>& strategies();
/// Throws Error with all names.
const Strategy& find_strategy(const std::string& name);

/// Rates between devices, and how many a node has, where each takes the place of `share` of them.
void set_machine(const Platform& platform, std::int64_t share, StrategyProblem& problem);

/// The layers of a described model by the prices of one device. `space.step.layout` says what is
/// not chosen: tensor and context parallel ranks, precision.
StrategyProblem strategy_problem(const PlanSpace& space, const StepCalibration& calibration,
                                 std::int64_t gpus);

/// The layout of a plan whose stages all have as many replicas, which the batch divides among; else
/// nothing. `generate` cuts layers into stages as evenly as it can, whatever the plan says.
std::optional<Layout> layout_of(const StrategyPlan& plan, const Layout& base);

/// A plan that a strategy chose, and what the price of its layout says of it.
struct StrategyOutcome {
  StrategyPlan plan;
  LayerCosts layers;  ///< For its micro-batch.
  bool is_layout = false;
  /// The only one in `best` is its layout, or else the fastest plain one.
  PlanOutcome outcome;
};
/// The fastest, by its own model, over the counts of GPUs. REQUIRES: strategy.plan.
StrategyOutcome plan_by(const Strategy& strategy, const PlanSpace& space,
                        const StepCalibration& calibration);

/// The memory of a device of a stage, bytes, by the formulas of PipeDream-2BW, section 3.3:
/// `weights` and `activations` are of the whole model, `input` is that of a stage.
double two_versions_memory(double weights, double activations, double input, double depth,
                           bool recomputes);

}  // namespace foretrace
