// The integer program of node allocation, which chooses one number of nodes for each job. For each
// job j, C is its current nodes, u and d say whether it gains or loses nodes, and y whether it has
// none. Its curve has points (N_i, O_i) with weights w_i; only two neighboring weights may be used,
// which the segments s_i enforce.
//     n = sum_i N_i w_i,  sum_i w_i = 1,  w_i <= s_{i-1} + s_i,  sum_i s_i = 1
//     least (1 - y) <= n <= most (1 - y)
//     n <= C + (M - C) u,   n >= (C + 1) u
//     n <= C - 1 + (M - C + 1) (1 - d),   n >= C (1 - d)

#include <algorithm>
#include <cmath>

#include "studies/allocate/assign.h"
#include "studies/program/integer_program.h"

namespace foretrace {
namespace {

class NodeProgram {
 public:
  explicit NodeProgram(const AllocationProblem& problem) : problem_(problem) {}

  NodeShares solve() {
    IntegerProgram::Terms all;
    for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
      add_job(j);
      all.emplace_back(counts_.back(), 1.);
    }
    program_.require(all, -kInfinite, static_cast<double>(problem_.nodes));
    const IntegerProgram::Solution solution = program_.maximize();
    NodeShares answer{.nodes = {}, .value = solution.objective};
    for (const int count : counts_)
      answer.nodes.push_back(std::llround(solution.values[static_cast<std::size_t>(count)]));
    return answer;
  }

 private:
  using Kind = IntegerProgram::Kind;
  static constexpr double kInfinite = IntegerProgram::kInfinite;

  void add_job(std::size_t j) {
    const JobState& state = problem_.jobs[j];
    const auto all = static_cast<double>(problem_.nodes) + 1, c = static_cast<double>(state.nodes);
    const double rate = problem_.current_rate(j);
    const int n = program_.add(Kind::integer, all, 0);
    counts_.push_back(n);
    add_curve(n, problem_.curves[j], static_cast<double>(state.job->most));
    const int none = program_.add(Kind::binary, 1, 0);
    const auto least = static_cast<double>(state.job->least),
               most = static_cast<double>(state.job->most);
    program_.require({{n, 1.}, {none, least}}, least, kInfinite);
    program_.require({{n, 1.}, {none, most}}, -kInfinite, most);
    const int up = program_.add(Kind::binary, 1, -state.job->up * rate);
    const int down = program_.add(Kind::binary, 1, -state.job->down * rate);
    const double m = std::max(all, c + 1);
    program_.require({{n, 1.}, {up, -(m - c)}}, -kInfinite, c);
    program_.require({{n, 1.}, {up, -(c + 1)}}, 0, kInfinite);
    program_.require({{n, 1.}, {down, m - c + 1}}, -kInfinite, m);
    program_.require({{n, 1.}, {down, c}}, c, kInfinite);
  }

  void add_curve(int n, const RateCurve& curve, double most) {
    std::vector<std::pair<double, double>> points = {{0., 0.}};
    for (const auto& point : curve.points) points.push_back(point);
    if (points.back().first < most) points.emplace_back(most, points.back().second);
    IntegerProgram::Terms nodes = {{n, -1.}}, weights, segments;
    for (const auto& [count, rate] : points) {
      const int weight = program_.add(Kind::continuous, 1, problem_.horizon * rate);
      nodes.emplace_back(weight, count), weights.emplace_back(weight, 1.);
    }
    for (std::size_t i = 0; i + 1 < points.size(); ++i)
      segments.emplace_back(program_.add(Kind::binary, 1, 0), 1.);
    program_.require(nodes, 0, 0);
    program_.require(weights, 1, 1);
    program_.require(segments, 1, 1);
    for (std::size_t i = 0; i < points.size(); ++i) {
      IntegerProgram::Terms row = {weights[i]};
      if (i > 0) row.emplace_back(segments[i - 1].first, -1.);
      if (i < segments.size()) row.emplace_back(segments[i].first, -1.);
      program_.require(row, -kInfinite, 0);
    }
  }

  const AllocationProblem& problem_;
  IntegerProgram program_{"knapsack"};
  std::vector<int> counts_;  ///< Variables, by job.
};

}  // namespace

NodeShares allocate_by_milp(const AllocationProblem& problem) {
  return NodeProgram(problem).solve();
}

}  // namespace foretrace
