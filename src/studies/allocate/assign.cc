#include "studies/allocate/assign.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>

#include "base/numbers/expression.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

RateCurve scaled_curve(RateCurve curve, double factor) {
  for (auto& [nodes, rate] : curve.points) rate *= factor;
  return curve;
}

/// Caps a curve at 1, with a corner where it reaches 1.
RateCurve capped_curve(const RateCurve& curve) {
  RateCurve capped;
  double before_nodes = 0, before = 0;
  for (const auto& [nodes, rate] : curve.points) {
    if (before < 1 && rate > 1)
      capped.points.emplace_back(
          before_nodes + (nodes - before_nodes) * (1 - before) / (rate - before), 1.);
    capped.points.emplace_back(nodes, std::min(rate, 1.));
    before_nodes = nodes, before = rate;
  }
  return capped;
}

}  // namespace

double RateCurve::at(double nodes) const {
  double before_nodes = 0, before = 0;
  for (const auto& [end, rate] : points) {
    if (nodes <= end)
      return before + (rate - before) * (nodes - before_nodes) / (end - before_nodes);
    before_nodes = end, before = rate;
  }
  return before;
}

namespace {

RateCurve formula_curve(const JobState& state, const std::string& formula, Nanoseconds time) {
  constexpr std::int64_t kMaxPoints = 4096;
  const ElasticJob& job = *state.job;
  const double left = job.deadline > 0ns ? in_seconds(job.deadline - time) : 0;
  Expression expression(formula, kObjectiveNames);
  RateCurve curve;
  const std::int64_t step = 1 + job.most / kMaxPoints;
  for (std::int64_t n = step; n < job.most + step; n += step) {
    const auto nodes = static_cast<double>(std::min(n, job.most));
    const double values[] = {
        nodes, job.rates.at(nodes), job.rates.at(1), job.value, job.samples, state.done, left};
    curve.points.emplace_back(
        nodes, within("objective of job " + job.name, [&] { return expression.at(values); }));
  }
  return curve;
}

}  // namespace

RateCurve objective_curve(const JobState& state, const std::string& objective, Nanoseconds time) {
  const ElasticJob& job = *state.job;
  if (std::ranges::find(kObjectives, objective) == std::end(kObjectives))
    return formula_curve(state, objective, time);
  if (objective == "throughput") return job.rates;
  if (objective == "price") {
    if (!std::isfinite(job.value) || job.value <= 0)
      throw Error("objective: price needs a value for job " + job.name);
    return scaled_curve(job.rates, job.value);
  }
  if (objective == "speedup") {
    const double one = job.rates.at(1);
    if (one <= 0)
      throw Error(fmt::format(
          "objective: speedup must be bounded; job {} processes no samples on one node", job.name));
    return scaled_curve(job.rates, 1 / one);
  }
  if (job.deadline <= 0ns || job.samples <= 0)
    throw Error("objective: deadline needs a deadline and samples for job " + job.name);
  // A job that is already late counts with the rate that it would need to finish within one second.
  const double left = std::max(1., in_seconds(job.deadline - time));
  const double needed = std::max(1e-9, job.samples - state.done) / left;
  return capped_curve(scaled_curve(job.rates, 1 / needed));
}

double AllocationProblem::current_rate(std::size_t j) const {
  const JobState& state = jobs[j];
  return state.nodes >= state.job->least ? curves[j].at(static_cast<double>(state.nodes)) : 0;
}

namespace {

double value_of(const AllocationProblem& problem, std::size_t j, std::int64_t nodes) {
  const JobState& state = problem.jobs[j];
  const double stop = nodes > state.nodes   ? state.job->up
                      : nodes < state.nodes ? state.job->down
                                            : 0;
  return problem.horizon * problem.curves[j].at(static_cast<double>(nodes)) -
         stop * problem.current_rate(j);
}

double value_of(const AllocationProblem& problem, const std::vector<std::int64_t>& nodes) {
  double sum = 0;
  for (std::size_t j = 0; j < nodes.size(); ++j) sum += value_of(problem, j, nodes[j]);
  return sum;
}

}  // namespace

NodeShares allocate_by_knapsack(const AllocationProblem& problem) {
  const auto budget = static_cast<std::size_t>(problem.nodes);
  // By nodes spent on the jobs so far: the value, and minus the number of nodes that change hands.
  using Score = std::pair<double, std::int64_t>;
  std::vector<Score> best(budget + 1, {0, 0}), next(budget + 1);
  std::vector<std::vector<std::int64_t>> chosen(problem.jobs.size());
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const JobState& state = problem.jobs[j];
    const std::int64_t most = std::min(state.job->most, problem.nodes);
    std::vector<std::pair<std::int64_t, Score>> choices;
    for (std::int64_t n = 0; n <= most;
         n = n == 0 ? std::max<std::int64_t>(1, state.job->least) : n + 1)
      choices.push_back({n, {value_of(problem, j, n), -std::abs(n - state.nodes)}});
    chosen[j].assign(budget + 1, 0);
    for (std::size_t b = 0; b <= budget; ++b) {
      Score best_score{kImpossible, 0};
      for (const auto& [n, score] : choices) {
        if (static_cast<std::size_t>(n) > b) break;
        const Score& rest = best[b - static_cast<std::size_t>(n)];
        const Score sum{rest.first + score.first, rest.second + score.second};
        if (sum > best_score) best_score = sum, chosen[j][b] = n;
      }
      next[b] = best_score;
    }
    std::swap(best, next);
  }
  NodeShares answer{.nodes = std::vector<std::int64_t>(problem.jobs.size())};
  std::size_t left = budget;
  for (std::size_t j = problem.jobs.size(); j-- > 0;) {
    answer.nodes[j] = chosen[j][left];
    left -= static_cast<std::size_t>(answer.nodes[j]);
  }
  answer.value = value_of(problem, answer.nodes);
  return answer;
}

NodeShares allocate_equally(const AllocationProblem& problem) {
  NodeShares answer{.nodes = std::vector<std::int64_t>(problem.jobs.size())};
  if (problem.jobs.empty()) return answer;
  std::int64_t left = problem.nodes;
  const std::int64_t share = problem.nodes / static_cast<std::int64_t>(problem.jobs.size());
  for (std::size_t j = 0; j < problem.jobs.size(); ++j) {
    const ElasticJob& job = *problem.jobs[j].job;
    const std::int64_t wanted = std::clamp(share, job.least, job.most);
    answer.nodes[j] = wanted <= left ? wanted : 0;
    left -= answer.nodes[j];
  }
  for (std::size_t j = 0; j < problem.jobs.size() && left > 0; ++j) {
    if (answer.nodes[j] == 0) continue;
    const std::int64_t more = std::min(left, problem.jobs[j].job->most - answer.nodes[j]);
    answer.nodes[j] += more, left -= more;
  }
  answer.value = value_of(problem, answer.nodes);
  return answer;
}

}  // namespace foretrace
