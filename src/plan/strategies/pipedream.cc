// PipeDream (Harlap et al. 2018, arXiv 1806.03377; replication as in its released optimizer):
// stages of consecutive layers, each on its own number of replicas, no flush. A(j, m) is the time
// of a micro-batch in the slowest stage of layers 0..j on m devices:
//
//     T(i..j, m) = 1/m (sum of passes + 4 (m-1)/m weights / rate)
//     A(j, m)    = min over i < j, m' < m of max(A(i, m-m'), 2 output_i / (rate m'), T(i+1..j, m'))
//
// Not modelled: connections inside nodes (the slowest link counts); overlap of passes and sums of
// gradients. A stage keeps one version of its weights for each micro-batch in flight.

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretrace/error.h"
#include "plan/strategies/registered.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxPartitioned = 256;

class Partition {
 public:
  Partition(const StrategyProblem& problem, const LayerCosts& layers)
      : problem_(problem),
        layers_(layers),
        devices_(static_cast<std::size_t>(problem.devices)),
        rate_(problem.rate(problem.devices)),
        table_(layers.size() * devices_) {}

  /// Returns the stages; empty if no stage fits.
  std::vector<StrategyStage> find() {
    for (std::size_t m = 1; m <= devices_; ++m) {
      for (std::size_t end = 1; end <= layers_.size(); ++end) at(end, m) = best(end, m);
    }
    std::vector<StrategyStage> stages;
    if (!std::isfinite(at(layers_.size(), devices_).us)) return stages;
    for (std::size_t end = layers_.size(), m = devices_; end > 0;) {
      const Cell& cell = at(end, m);
      stages.insert(stages.begin(), {.begin = cell.begin,
                                     .end = end,
                                     .replicas = static_cast<std::int64_t>(cell.replicas),
                                     .us = stage_us(cell.begin, end, cell.replicas)});
      end = cell.begin, m -= cell.replicas;
    }
    return stages;
  }

  double us() { return at(layers_.size(), devices_).us; }

 private:
  struct Cell {
    double us = std::numeric_limits<double>::infinity();
    std::size_t begin = 0, replicas = 0;  ///< The last stage.
  };

  Cell& at(std::size_t end, std::size_t m) { return table_[(end - 1) * devices_ + m - 1]; }

  double stage_us(std::size_t begin, std::size_t end, std::size_t replicas) const {
    const LayerCost cost = layers_.of(begin, end);
    const double sum = pipedream_sum(cost.exchanged, static_cast<std::int64_t>(replicas), rate_);
    return (cost.forward + cost.backward + sum) / static_cast<double>(replicas);
  }

  /// `behind` is the number of devices in later stages, which determine the micro-batches in
  /// flight.
  bool fits(std::size_t begin, std::size_t end, std::size_t replicas, std::size_t behind) const {
    const LayerCost cost = layers_.of(begin, end);
    const double flying =
        1 + std::ceil(static_cast<double>(behind) / static_cast<double>(replicas));
    return cost.state + flying * (cost.weights + cost.kept) <= problem_.memory;
  }

  Cell best(std::size_t end, std::size_t m) {
    Cell cell;
    const std::size_t behind = devices_ - m;
    if (fits(0, end, m, behind)) cell = {stage_us(0, end, m), 0, m};
    for (std::size_t begin = 1; begin < end; ++begin) {
      const double output = layers_.of(begin - 1, begin).output;
      for (std::size_t replicas = 1; replicas < m; ++replicas) {
        const double before = at(begin, m - replicas).us;
        if (before >= cell.us) continue;
        const double send = 2 * output / (rate_ * static_cast<double>(replicas));
        const double us = std::max({before, send, stage_us(begin, end, replicas)});
        if (us < cell.us && fits(begin, end, replicas, behind)) cell = {us, begin, replicas};
      }
    }
    return cell;
  }

  const StrategyProblem& problem_;
  LayerSums layers_;
  std::size_t devices_;
  double rate_;
  std::vector<Cell> table_;
};

}  // namespace

StrategyPlan plan_by_pipedream(const StrategyProblem& problem) {
  check_devices(problem, kMaxPartitioned, "pipedream");
  StrategyPlan plan{.schedule = "pipedream"};
  plan.us = std::numeric_limits<double>::infinity();
  for (const std::int64_t size : problem.sizes) {
    if (problem.global_batch % size != 0) continue;
    Partition partition(problem, problem.layers(size));
    const std::vector<StrategyStage> stages = partition.find();
    const double us = partition.us() * static_cast<double>(problem.global_batch / size);
    if (stages.empty() || us >= plan.us) continue;
    plan.stages = stages, plan.micro_batch = size, plan.us = us;
  }
  if (plan.stages.empty())
    throw Error("--strategy pipedream: no partition fits the memory of the devices");
  return plan;
}

}  // namespace foretrace
