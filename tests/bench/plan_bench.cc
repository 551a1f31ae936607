// How long it takes to plan a job: plan_bench [GPUS] [BATCH], GPT-3 175B on hosts with eight A100s.

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "plan/plan.h"

int main(int argc, char** argv) {
  using namespace foretrace;
  const std::int64_t gpus = argc > 1 ? std::atoll(argv[1]) : 1024;
  PlanSpace space{.step = {.name = "gpt3-175b"}, .gpus = {gpus}};
  space.step.workload = find_workload("gpt3-175b");
  space.step.platform = find_platform("dgx-a100");
  space.step.layout.global_batch = argc > 2 ? std::atoll(argv[2]) : 1536;
  const auto begin = std::chrono::steady_clock::now();
  const PlanOutcome outcome = plan_layouts(space, {});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%lld GPUs: %zu layouts, %zu replayed, best %.0f ms (%s), %zu in front, %.2f s\n",
              static_cast<long long>(gpus), outcome.candidates, outcome.replayed,
              outcome.best[0].price.us / 1e3, layout_text(outcome.best[0].layout).c_str(),
              outcome.front.size(), took.count());
  return 0;
}
