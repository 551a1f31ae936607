#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "base/wording.h"
#include "foretrace/error.h"
#include "plan/strategies/registered.h"

namespace foretrace {

const std::vector<Strategy>& strategies() {
  static const std::vector<Strategy> all = {
      {"exhaustive", "All layouts, by bounds and replays", nullptr},
#define STRATEGY(name, summary) {#name, summary, plan_by_##name},
#include "plan/strategies/strategies.def"
#undef STRATEGY
  };
  return all;
}

const Strategy& find_strategy(const std::string& name) {
  const auto found = std::ranges::find(strategies(), name, &Strategy::name);
  if (found != strategies().end()) return *found;
  std::vector<std::string_view> names;
  for (const Strategy& one : strategies()) names.push_back(one.name);
  throw Error(fmt::format("must be one of {}, got {}", joined(names), name));
}

void add(const LayerCost& one, LayerCost& to) {
  to.forward += one.forward, to.backward += one.backward, to.weights += one.weights;
  to.state += one.state, to.exchanged += one.exchanged, to.kept += one.kept;
}

LayerSums::LayerSums(const LayerCosts& layers) : sums_(1) {
  for (const LayerCost& layer : layers) {
    LayerCost sum = sums_.back();
    add(layer, sum);
    sums_.push_back(sum);
    outputs_.push_back(layer.output);
  }
}

LayerCost LayerSums::of(std::size_t begin, std::size_t end) const {
  const LayerCost &a = sums_[begin], &b = sums_[end];
  LayerCost cost;
  cost.forward = b.forward - a.forward, cost.backward = b.backward - a.backward;
  cost.weights = b.weights - a.weights, cost.state = b.state - a.state;
  cost.exchanged = b.exchanged - a.exchanged, cost.kept = b.kept - a.kept;
  cost.output = outputs_[end - 1];
  return cost;
}

void check_devices(const StrategyProblem& problem, std::int64_t most, const char* name) {
  if (problem.devices > most)
    throw Error(fmt::format("--gpus: must be at most {} for --strategy {}, got {}", most, name,
                            problem.devices));
}

std::vector<StrategyStage> even_stages(std::size_t layers, std::int64_t depth) {
  const auto stages = static_cast<std::size_t>(depth);
  std::vector<StrategyStage> even;
  for (std::size_t i = 0, begin = 0; i < stages; ++i) {
    const std::size_t end = begin + layers / stages + (i < layers % stages ? 1 : 0);
    even.push_back({.begin = begin, .end = end});
    begin = end;
  }
  return even;
}

std::optional<Layout> layout_of(const StrategyPlan& plan, const Layout& base) {
  const std::int64_t replicas = plan.stages.front().replicas;
  const auto has_same_replicas = [&](const StrategyStage& one) { return one.replicas == replicas; };
  if (!std::ranges::all_of(plan.stages, has_same_replicas)) return std::nullopt;
  const std::int64_t shares = plan.is_shared ? replicas : 1;
  if (plan.micro_batch % shares != 0 ||
      base.global_batch % (replicas * plan.micro_batch / shares) != 0)
    return std::nullopt;
  Layout layout = base;
  layout.pipeline = static_cast<std::int64_t>(plan.stages.size()), layout.data = replicas;
  layout.virtual_stages = 1, layout.micro_batch = plan.micro_batch / shares;
  layout.schedule = layout.pipeline > 1 ? plan.schedule : "1f1b";
  layout.recompute = plan.recomputes ? "full" : base.recompute;
  return layout;
}

}  // namespace foretrace
