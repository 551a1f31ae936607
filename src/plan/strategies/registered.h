#pragma once

// Declares plan_by_<name>() for every line of strategies.def, and the helpers that strategies
// share.

#include "plan/strategy.h"

namespace foretrace {

#define STRATEGY(name, summary) StrategyPlan plan_by_##name(const StrategyProblem& problem);
#include "plan/strategies/strategies.def"
#undef STRATEGY

/// Sums over layers in constant time.
class LayerSums {
 public:
  explicit LayerSums(const LayerCosts& layers);
  std::size_t size() const { return sums_.size() - 1; }
  /// Returns all costs except the name, summed over the layers from `begin` up to but not including
  /// `end`; `output` is that of the last.
  LayerCost of(std::size_t begin, std::size_t end) const;

 private:
  std::vector<LayerCost> sums_;
  std::vector<double> outputs_;
};

/// Returns the time that a ring takes to sum this many bytes over replicas.
inline double ring_sum(double bytes, std::int64_t replicas, double rate) {
  const auto r = static_cast<double>(replicas);
  return 2 * (r - 1) / r * bytes / rate;
}
/// PipeDream's model: each replica sends and receives the gradients twice.
inline double pipedream_sum(double bytes, std::int64_t replicas, double rate) {
  return 2 * ring_sum(bytes, replicas, rate);
}

/// Adds all costs except name and output.
void add(const LayerCost& one, LayerCost& to);

/// Throws Error where the search would take too long.
void check_devices(const StrategyProblem& problem, std::int64_t most, const char* name);

/// Splits layers as evenly as possible; the first stages get the extra layers.
std::vector<StrategyStage> even_stages(std::size_t layers, std::int64_t depth);

}  // namespace foretrace
