// The integer program of planning nodes, with one number of nodes for each job. By job j: C nodes
// now, u and d whether it gains or loses nodes, y whether it has none, points (N_i, O_i) of its
// curve with weights w_i of which two neighbors may be used, by segments s_i.
//
//     n = sum_i N_i w_i,  sum_i w_i = 1,  w_i <= s_{i-1} + s_i,  sum_i s_i = 1
//     least (1 - y) <= n <= most (1 - y)
//     n <= C + (M - C) u,   n >= (C + 1) u
//     n <= C - 1 + (M - C + 1) (1 - d),   n >= C (1 - d)

#include "foretrace/error.h"
#include "plan/allocate.h"

#ifdef FORETRACE_HAVE_GLPK

#include <glpk.h>

#include <cmath>
#include <memory>

namespace foretrace {
namespace {

constexpr int kMilliseconds = 10'000;

class Program {
 public:
  explicit Program(const AllocationProblem& problem)
      : problem_(problem), program_(glp_create_prob(), glp_delete_prob) {
    glp_set_obj_dir(program_.get(), GLP_MAX);
  }

  NodeShares solve() {
    std::vector<std::pair<int, double>> all;
    for (std::size_t j = 0; j < problem_.jobs.size(); ++j) {
      add_job(j);
      all.emplace_back(counts_.back(), 1.);
    }
    add_row(all, -HUGE_VAL, static_cast<double>(problem_.nodes));
    glp_iocp settings;
    glp_init_iocp(&settings);
    settings.msg_lev = GLP_MSG_OFF, settings.presolve = GLP_ON;
    settings.tm_lim = kMilliseconds;
    glp_term_out(GLP_OFF);
    if (glp_intopt(program_.get(), &settings) != 0 || glp_mip_status(program_.get()) != GLP_OPT)
      throw Error("--solver: milp found no optimum within 10 s; knapsack is exact, too");
    NodeShares answer;
    for (const int column : counts_)
      answer.nodes.push_back(std::llround(glp_mip_col_val(program_.get(), column)));
    answer.value = glp_mip_obj_val(program_.get());
    return answer;
  }

 private:
  int add_column(int kind, double most, double worth) {
    const int column = glp_add_cols(program_.get(), 1);
    glp_set_col_kind(program_.get(), column, kind);
    if (most > 0)
      glp_set_col_bnds(program_.get(), column, GLP_DB, 0, most);
    else
      glp_set_col_bnds(program_.get(), column, GLP_FX, 0, 0);
    glp_set_obj_coef(program_.get(), column, worth);
    return column;
  }

  void add_row(const std::vector<std::pair<int, double>>& terms, double least, double most) {
    const int row = glp_add_rows(program_.get(), 1);
    std::vector<int> columns = {0};  // glpk counts from 1.
    std::vector<double> factors = {0};
    for (const auto& [column, factor] : terms) columns.push_back(column), factors.push_back(factor);
    const int kind = least == -HUGE_VAL ? GLP_UP
                     : most == HUGE_VAL ? GLP_LO
                     : least == most    ? GLP_FX
                                        : GLP_DB;
    glp_set_row_bnds(program_.get(), row, kind, least, most);
    glp_set_mat_row(program_.get(), row, static_cast<int>(terms.size()), columns.data(),
                    factors.data());
  }

  void add_job(std::size_t j) {
    const JobNow& now = problem_.jobs[j];
    const auto all = static_cast<double>(problem_.nodes) + 1, c = static_cast<double>(now.nodes);
    const double rate = now.nodes >= now.job->least ? problem_.curves[j].at(c) : 0;
    const int n = add_column(GLP_IV, all, 0);
    counts_.push_back(n);
    add_curve(n, problem_.curves[j], static_cast<double>(now.job->most));
    const int none = add_column(GLP_BV, 1, 0);
    const auto least = static_cast<double>(now.job->least),
               most = static_cast<double>(now.job->most);
    add_row({{n, 1.}, {none, least}}, least, HUGE_VAL);
    add_row({{n, 1.}, {none, most}}, -HUGE_VAL, most);
    const int up = add_column(GLP_BV, 1, -now.job->up * rate);
    const int down = add_column(GLP_BV, 1, -now.job->down * rate);
    const double m = std::max(all, c + 1);
    add_row({{n, 1.}, {up, -(m - c)}}, -HUGE_VAL, c);
    add_row({{n, 1.}, {up, -(c + 1)}}, 0, HUGE_VAL);
    add_row({{n, 1.}, {down, m - c + 1}}, -HUGE_VAL, m);
    add_row({{n, 1.}, {down, c}}, c, HUGE_VAL);
  }

  void add_curve(int n, const RateCurve& curve, double most) {
    std::vector<std::pair<double, double>> points = {{0., 0.}};
    for (const auto& point : curve.points) points.push_back(point);
    if (points.back().first < most) points.emplace_back(most, points.back().second);
    std::vector<std::pair<int, double>> nodes = {{n, -1.}}, weights, segments;
    for (const auto& [count, rate] : points) {
      const int weight = add_column(GLP_CV, 1, problem_.ahead * rate);
      nodes.emplace_back(weight, count), weights.emplace_back(weight, 1.);
    }
    for (std::size_t i = 0; i + 1 < points.size(); ++i)
      segments.emplace_back(add_column(GLP_BV, 1, 0), 1.);
    add_row(nodes, 0, 0);
    add_row(weights, 1, 1);
    add_row(segments, 1, 1);
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::vector<std::pair<int, double>> row = {weights[i]};
      if (i > 0) row.emplace_back(segments[i - 1].first, -1.);
      if (i < segments.size()) row.emplace_back(segments[i].first, -1.);
      add_row(row, -HUGE_VAL, 0);
    }
  }

  const AllocationProblem& problem_;
  std::unique_ptr<glp_prob, void (*)(glp_prob*)> program_;
  std::vector<int> counts_;  ///< Columns, by job.
};

}  // namespace

NodeShares allocate_by_milp(const AllocationProblem& problem) { return Program(problem).solve(); }

}  // namespace foretrace

#else

namespace foretrace {

NodeShares allocate_by_milp(const AllocationProblem&) {
  throw Error("--solver: milp needs a build with glpk; knapsack is exact, too");
}

}  // namespace foretrace

#endif
