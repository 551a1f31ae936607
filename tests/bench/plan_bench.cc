// plan_bench [GPUs] [batch]: measures how long it takes to plan a job (GPT-3 175B on hosts with
// eight A100s) and to give 1,000 nodes to 30 elastic jobs.

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "arguments.h"
#include "foretrace/error.h"
#include "plan/plan.h"
#include "studies/allocate/assign.h"

namespace foretrace {
namespace {

/// The median time of several decisions.
double milliseconds_of(Allocate solve, int times) {
  std::vector<ElasticJob> jobs(30);
  AllocationProblem problem;
  problem.nodes = 1000;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    jobs[j].up = 18, jobs[j].down = 12;
    const auto speed = static_cast<double>(j + 1);
    for (double n = 1; n <= 64; n *= 2)
      jobs[j].rates.points.emplace_back(n, 1000 * speed * n / (1 + n / 100));
    problem.jobs.push_back({&jobs[j], static_cast<std::int64_t>(7 * j % 40)});
    problem.curves.push_back(jobs[j].rates);
  }
  std::vector<double> took;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    solve(problem);
    const std::chrono::duration<double, std::milli> one = std::chrono::steady_clock::now() - begin;
    took.push_back(one.count());
  }
  std::sort(took.begin(), took.end());
  return took[took.size() / 2];
}

void run(const bench::Arguments& arguments) {
  const auto gpus = arguments.number<std::int64_t>(1, 1024);
  PlanSpace space{.step = {.name = "gpt3-175b"}, .gpus = {gpus}};
  space.step.workload = find_workload("gpt3-175b");
  space.step.platform = find_platform("dgx-a100");
  space.step.layout.global_batch = arguments.number<std::int64_t>(2, 1536);
  const auto begin = std::chrono::steady_clock::now();
  const PlanOutcome outcome = plan_layouts(space, {});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%lld GPUs: %zu layouts, %zu replayed, best %.0f ms (%s), %zu in front, %.2f s\n",
              static_cast<long long>(gpus), outcome.candidates, outcome.replayed,
              outcome.best[0].price.us / 1e3, layout_text(outcome.best[0].layout).c_str(),
              outcome.front.size(), took.count());
  std::printf("1,000 nodes, 30 jobs: %.1f ms by knapsack",
              milliseconds_of(allocate_by_knapsack, 5));
  try {
    std::printf(", %.0f ms by milp\n", milliseconds_of(allocate_by_milp, 1));
  } catch (const Error&) {
    std::printf("\n");
  }
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  try {
    foretrace::run({argc, argv, "[GPUs] [batch]"});
  } catch (const foretrace::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
