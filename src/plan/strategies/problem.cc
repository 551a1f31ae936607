// The layers of a described model as strategies see them. Each layer is priced as a model of its
// own on one device, so that it costs what `generate` says.

#include <algorithm>
#include <fmt/core.h>
#include <memory>

#include "foretrace/error.h"
#include "plan/strategies/registered.h"

namespace foretrace {
namespace {

constexpr double kMicroseconds = 1e-6;  ///< Seconds.

/// A model of one layer, without embedding and head.
class OneLayer final : public Workload {
 public:
  OneLayer(LayerRow row, std::int64_t tokens) : row_(std::move(row)), tokens_(tokens) {
    row_.count = 1, row_.name = "layer";
  }
  void describe(Fields&) override {}
  LayerTable layers(const LayerSlice&) const override {
    return {LayerRow{.name = "embedding"}, row_, LayerRow{.name = "head"}};
  }
  std::int64_t layer_count() const override { return 1; }
  std::int64_t tokens() const override { return tokens_; }
  std::vector<double> traits() const override { return {}; }

 private:
  LayerRow row_;
  std::int64_t tokens_;
};

double part_of(const StepMemory& memory, const char* name) {
  for (const auto& [part, bytes] : memory.parts) {
    if (part == name) return static_cast<double>(bytes.count);
  }
  return 0;
}

class LayerPricer {
 public:
  LayerPricer(const PlanSpace& space, const Constants& constants)
      : step_(space.step), constants_(constants) {
    Layout& layout = step_.layout;
    layout.pipeline = layout.data = layout.virtual_stages = 1;
    layout.zero = 0, layout.recompute = "none";
    layout.replicas = layout.flushes = 1;
  }

  /// Returns the bytes of a device that tensors may use. The rest is taken by the context, network
  /// buffers and allocator fragmentation.
  double usable(double bytes) {
    const LayerTable table = step_.workload->layers(slice_of(step_.layout));
    const OneLayer nothing(LayerRow{}, step_.workload->tokens()), one(table[1], 1);
    const auto context = static_cast<double>(pricer_.memory(nothing, step_.layout).reserved.count);
    const StepMemory memory = pricer_.memory(one, step_.layout);
    return (bytes - context) * static_cast<double>(memory.allocated.count) /
           (static_cast<double>(memory.reserved.count) - context);
  }

  /// Embedding and head are part of the first and the last layer.
  LayerCosts costs(std::int64_t micro_batch) {
    step_.layout.micro_batch = step_.layout.global_batch = micro_batch;
    const LayerTable table = step_.workload->layers(slice_of(step_.layout));
    LayerCosts costs;
    for (std::size_t row = 1; row + 1 < table.size(); ++row) {
      const LayerCost one = cost_of(table[row]);
      for (std::int64_t i = 0; i < table[row].count; ++i) {
        costs.push_back(one);
        costs.back().name = fmt::format("{} {}", table[row].name, costs.size());
      }
    }
    add(cost_of(table.front()), costs.front());
    add(cost_of(table.back()), costs.back());
    return costs;
  }

 private:
  LayerCost cost_of(const LayerRow& row) {
    const OneLayer alone(row, step_.workload->tokens());
    Layout& layout = step_.layout;
    const auto passes = [&] {
      const StepPrice price = pricer_.price(alone, layout, step_.platform, constants_);
      return price.compute + price.tensor;
    };
    LayerCost cost{.output = static_cast<double>(row.output.count)};
    const double both = passes();
    layout.recompute = "full";
    cost.forward = passes() - both, cost.backward = both - cost.forward;
    layout.recompute = "none";
    const StepMemory memory = pricer_.memory(alone, layout);
    cost.weights = part_of(memory, "weights"), cost.exchanged = part_of(memory, "gradients");
    cost.state = cost.exchanged + part_of(memory, "optimizer state");
    cost.kept = part_of(memory, "activations");
    return cost;
  }

  MeasuredStep step_;
  Constants constants_;
  StepPricer pricer_;
};

}  // namespace

void set_machine(const Platform& platform, std::int64_t share, StrategyProblem& problem) {
  problem.per_node = std::max<std::int64_t>(1, platform.per_node / share);
  problem.within = platform.within.bytes_per_second * kMicroseconds;
  problem.across = platform.across.bytes_per_second * kMicroseconds;
}

StrategyProblem strategy_problem(const PlanSpace& space, const StepCalibration& calibration,
                                 std::int64_t gpus) {
  const Layout& layout = space.step.layout;
  const std::int64_t share = layout.tensor * layout.context;
  if (gpus % share != 0)
    throw Error(fmt::format("--gpus: must be a multiple of tp x cp, {}, got {}", share, gpus));
  StrategyProblem problem;
  problem.devices = gpus / share;
  set_machine(space.step.platform, share, problem);
  problem.global_batch = layout.global_batch;
  problem.sizes.clear();
  for (std::int64_t size = 1; size <= problem.global_batch; size *= 2) {
    if (problem.global_batch % size == 0) problem.sizes.push_back(size);
  }
  if (space.fixed.contains("micro_batch")) problem.sizes = {layout.micro_batch};
  problem.latency = calibration.fitted().send;
  const auto pricer = std::make_shared<LayerPricer>(space, calibration.fitted());
  problem.memory = pricer->usable(static_cast<double>(space.limit().count));
  problem.layers = [pricer](std::int64_t size) { return pricer->costs(size); };
  return problem;
}

}  // namespace foretrace
