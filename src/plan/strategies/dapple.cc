// DAPPLE (Fan et al. 2021; the formula of its released planner): stages of consecutive layers that
// share each micro-batch among their replicas, M micro-batches, a flush. t is the time of the
// slowest stage; stage i, counted from 0, has time t_i, transfer time c_i of its input and the
// gradient of it, and time AR_i to sum its gradients:
//
//     L = t (M - 1) + sum_i t_i + sum_i c_i + max_i(AR_i - i t, 0)
//
// It finds the least L of all partitions. For a limit on t, stages are added from the last to the
// first, and only Pareto-optimal partial plans are kept. L(limit) = limit (M - 1) + F(limit), where
// F falls as the limit grows: limits are bisected, and ranges that cannot contain a better one are
// skipped. With at most M stages, a limit above t never makes L smaller, so the minimum is exact. A
// stage with k stages behind it has k + 1 micro-batches in flight.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "foretrace/error.h"
#include "plan/strategies/registered.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxSearched = 64;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// A partial plan: the stages of the last layers.
struct PartialPlan {
  double us = 0;        ///< Time of their passes and inputs.
  double overflow = 0;  ///< The largest AR_i - i t, with i counted from the first of these stages.
  std::size_t stages = 0;
  StrategyStage first{};
  std::size_t behind = 0;  ///< The partial plan that `first` was put in front of.
};

class LeastLatency {
 public:
  LeastLatency(const StrategyProblem& problem, std::int64_t size)
      : problem_(problem),
        layers_(problem.layers(size)),
        devices_(static_cast<std::size_t>(problem.devices)),
        micro_batches_(static_cast<double>(problem.global_batch / size)) {}

  /// Returns the best plan; its stages are empty if nothing fits.
  StrategyPlan find() {
    find_limits();
    if (limits_.empty()) return {};
    const std::size_t last = limits_.size() - 1;
    const double least = ramp_us(0), most = ramp_us(last);
    if (most == kInfinite) return {};
    bisect(0, least, last, most);
    return plan_;
  }

 private:
  double pass_us(std::size_t begin, std::size_t end, std::size_t replicas) const {
    const LayerCost cost = layers_.of(begin, end);
    return (cost.forward + cost.backward) / static_cast<double>(replicas);
  }

  /// Collects the possible times of a stage that leave no device with less than its share.
  void find_limits() {
    const double share = pass_us(0, layers_.size(), devices_);
    for (std::size_t begin = 0; begin < layers_.size(); ++begin) {
      for (std::size_t end = begin + 1; end <= layers_.size(); ++end) {
        for (std::size_t replicas = 1; replicas <= devices_; ++replicas) {
          const double us = pass_us(begin, end, replicas);
          if (us < share * (1 - 1e-9)) break;
          limits_.push_back(us);
        }
      }
    }
    std::ranges::sort(limits_);
    const auto is_same = [](double a, double b) { return b <= a * (1 + 1e-9); };
    limits_.erase(std::unique(limits_.begin(), limits_.end(), is_same), limits_.end());
    // The largest of nearly equal limits must exclude none of them.
    for (double& limit : limits_) limit *= 1 + 2e-9;
  }

  void bisect(std::size_t low, double low_us, std::size_t high, double high_us) {
    const double bound = limits_[low] * (micro_batches_ - 1) + high_us;
    if (high - low < 2 || bound >= plan_us_ * (1 - 1e-9)) return;
    const std::size_t middle = low + (high - low) / 2;
    const double middle_us = ramp_us(middle);
    bisect(low, low_us, middle, middle_us);
    bisect(middle, middle_us, high, high_us);
  }

  /// Returns F of a limit; remembers the plan if it is the best so far.
  double ramp_us(std::size_t index) {
    const double limit = limits_[index];
    partials_.assign((layers_.size() + 1) * (devices_ + 1), {});
    partials_[layers_.size() * (devices_ + 1)].push_back({.behind = 0});
    for (std::size_t begin = layers_.size(); begin-- > 0;) {
      for (std::size_t end = begin + 1; end <= layers_.size(); ++end) {
        for (std::size_t replicas = 1; replicas <= devices_; ++replicas)
          add_stage(begin, end, replicas, limit);
      }
    }
    double least = kInfinite;
    const std::vector<PartialPlan>& complete = partials_[devices_];
    for (std::size_t i = 0; i < complete.size(); ++i) {
      const double us = complete[i].us + std::max(0., complete[i].overflow);
      if (us >= least) continue;
      least = us;
      if (us + limit * (micro_batches_ - 1) < plan_us_)
        keep_plan(i, us + limit * (micro_batches_ - 1));
    }
    return least;
  }

  void add_stage(std::size_t begin, std::size_t end, std::size_t replicas, double limit) {
    const double us = pass_us(begin, end, replicas);
    if (us > limit) return;
    const auto count = static_cast<std::int64_t>(replicas);
    const double r = static_cast<double>(replicas);
    const LayerCost cost = layers_.of(begin, end);
    const double input = begin > 0 ? layers_.of(begin - 1, begin).output : 0;
    const double send = 2 * input / (problem_.rate(problem_.devices) * r);
    const double sum = ring_sum(cost.exchanged, count, problem_.rate(count));
    for (std::size_t used = 0; used + replicas <= devices_; ++used) {
      const std::vector<PartialPlan>& behind = partials_[end * (devices_ + 1) + used];
      for (std::size_t i = 0; i < behind.size(); ++i) {
        const auto flying = static_cast<double>(behind[i].stages + 1);
        if (flying > micro_batches_) continue;
        if (cost.state + cost.weights + cost.kept * flying / r > problem_.memory) continue;
        const double overflow =
            behind[i].stages == 0 ? sum : std::max(sum, behind[i].overflow - limit);
        add_undominated(
            {behind[i].us + us + send, overflow, behind[i].stages + 1, {begin, end, count, us}, i},
            partials_[begin * (devices_ + 1) + used + replicas]);
      }
    }
  }

  static void add_undominated(const PartialPlan& plan, std::vector<PartialPlan>& partials) {
    const auto is_no_worse = [](const PartialPlan& a, const PartialPlan& b) {
      return a.us <= b.us && a.overflow <= b.overflow && a.stages <= b.stages;
    };
    // Partial plans are referred to by index, so that one dominated by a new one is not removed.
    for (const PartialPlan& other : partials) {
      if (is_no_worse(other, plan)) return;
    }
    partials.push_back(plan);
  }

  void keep_plan(std::size_t i, double us) {
    plan_us_ = us;
    plan_.us = us, plan_.stages.clear();
    for (std::size_t begin = 0, used = devices_; begin < layers_.size();) {
      const PartialPlan& partial = partials_[begin * (devices_ + 1) + used][i];
      plan_.stages.push_back(partial.first);
      begin = partial.first.end, used -= static_cast<std::size_t>(partial.first.replicas),
      i = partial.behind;
    }
  }

  const StrategyProblem& problem_;
  LayerSums layers_;
  std::size_t devices_;
  double micro_batches_;
  std::vector<double> limits_;
  std::vector<std::vector<PartialPlan>> partials_;  ///< By first layer and devices used.
  double plan_us_ = kInfinite;
  StrategyPlan plan_;
};

}  // namespace

StrategyPlan plan_by_dapple(const StrategyProblem& problem) {
  check_devices(problem, kMaxSearched, "dapple");
  StrategyPlan plan;
  for (const std::int64_t size : problem.sizes) {
    if (problem.global_batch % size != 0) continue;
    StrategyPlan one = LeastLatency(problem, size).find();
    if (one.stages.empty() || (!plan.stages.empty() && one.us >= plan.us)) continue;
    plan = std::move(one);
    plan.micro_batch = size, plan.is_shared = true, plan.schedule = "1f1b";
  }
  if (plan.stages.empty())
    throw Error("--strategy dapple: no partition fits the memory of the devices");
  return plan;
}

}  // namespace foretrace
