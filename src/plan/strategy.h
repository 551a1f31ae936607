#pragma once

// Published planners of pipelines: one file each in strategies/, one line in strategies.def. Each
// has its own model of a step, which is simpler than the replay. Their choice is therefore priced
// again by replay if it can be expressed as a layout.
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
  double output = 0;     ///< Bytes passed to the next layer.
  double weights = 0;    ///< Bytes of one version of the weights.
  double state = 0;      ///< Bytes of gradients and optimizer.
  double exchanged = 0;  ///< Bytes of gradients that the replicas of a stage sum.
  double kept = 0;       ///< Bytes kept for the backward pass.
};
using LayerCosts = std::vector<LayerCost>;

struct StrategyProblem {
  /// Returns the layers' costs for micro-batches of this many samples; always the same for one
  /// size. May be slow.
  std::function<LayerCosts(std::int64_t micro_batch)> layers{};
  std::vector<std::int64_t> sizes{1};  ///< Candidate sizes of micro-batches, ascending.
  std::int64_t devices = 1, per_node = 1;
  std::int64_t global_batch = 1;  ///< Samples.
  double within = 1, across = 1;  ///< Rates of a device to devices in its node, and to others.
  double latency = 0;
  double memory = 0;  ///< Of a device.

  /// Returns the rate between neighbors in a group of this many devices.
  double rate(std::int64_t group) const { return group <= per_node ? within : across; }
};

struct StrategyStage {
  std::size_t begin = 0, end = 0;  ///< Layer range; `end` is one past the last.
  std::int64_t replicas = 1;
  double us = 0;  ///< Time of a micro-batch with all replicas at work.
};

struct StrategyPlan {
  std::vector<StrategyStage> stages{};
  std::int64_t micro_batch = 1;  ///< Samples.
  bool is_shared = false;        ///< Replicas share each micro-batch instead of taking turns.
  std::string schedule{};
  bool recomputes = false;
  double us = 0;  ///< A step on the global batch, by the strategy's own model.
};

struct Strategy {
  std::string_view name, summary;
  /// Throws Error if nothing fits. nullptr stands for plan_layouts().
  StrategyPlan (*plan)(const StrategyProblem& problem);
};
/// The exhaustive search comes first.
const std::vector<Strategy>& strategies();
/// Throws Error with all names.
const Strategy& find_strategy(const std::string& name);

/// Sets the rates between devices and the devices per node, where each device of the problem stands
/// for `share` devices of the machine.
void set_machine(const Platform& platform, std::int64_t share, StrategyProblem& problem);

/// Returns the layers of a described model with the prices of one device. `space.step.layout` gives
/// the settings that the strategy does not choose: tensor and context parallel ranks, and
/// precision.
StrategyProblem strategy_problem(const PlanSpace& space, const StepCalibration& calibration,
                                 std::int64_t gpus);

/// Returns the layout of a plan whose stages all have the same number of replicas, and whose batch
/// divides among them; nullopt otherwise. `generate` cuts layers into stages as evenly as it can,
/// whatever the plan says.
std::optional<Layout> layout_of(const StrategyPlan& plan, const Layout& base);

/// A plan that a strategy chose, with the price of its layout.
struct StrategyOutcome {
  StrategyPlan plan;
  LayerCosts layers;  ///< For the plan's micro-batch.
  bool is_layout = false;
  /// `best` holds only the plan's layout, or the fastest plain layout if the plan is none.
  PlanOutcome outcome;
};
/// Returns the plan that is fastest by the strategy's own model, over the counts of GPUs. REQUIRES:
/// strategy.plan.
StrategyOutcome plan_by(const Strategy& strategy, const PlanSpace& space,
                        const StepCalibration& calibration);

/// Returns the bytes that a device of a stage needs, by the formulas of PipeDream-2BW, section 3.3.
/// `weights` and `activations` are of the whole model, `input` is of one stage.
double two_versions_memory(double weights, double activations, double input, double depth,
                           bool recomputes);

}  // namespace foretrace
