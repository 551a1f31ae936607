// The cost of an interval compared with the one replay that a prediction needs anyway: 200
// resamples of a job of six steps, each with the work of steps drawn at random.
//
//     resample_bench [tasks]      200000 by default; prints one table

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include "analysis/doubt/resample.h"
#include "arguments.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

constexpr int kSteps = 6;

/// A host that launches kernels of 5 to 25 us, whose times vary a little from step to step.
Graph make_job(std::uint32_t tasks) {
  Graph graph;
  const LaneId cpu = graph.add_lane({.name = "cpu", .kind = LaneKind::host_thread});
  const LaneId gpu = graph.add_lane({.name = "gpu", .device = 0});
  const NameId launch = graph.names().intern("launch"), kernel = graph.names().intern("gemm");
  std::uint64_t state = 1;
  for (int step = 0; step < kSteps; ++step) {
    graph.steps().push_back({"ProfilerStep#" + std::to_string(step)});
    for (std::uint32_t i = 0; i < tasks / kSteps / 2; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const auto jitter = static_cast<std::int64_t>(state >> 54U);
      const TaskId call = graph.append(cpu, {.duration = Nanoseconds(5'000 + jitter),
                                             .name = launch,
                                             .step = step,
                                             .kind = TaskKind::launch});
      const TaskId task =
          graph.append(gpu, {.duration = Nanoseconds(5'000 + 20 * (i % 1000) + jitter),
                             .name = kernel,
                             .step = step});
      graph.add(
          {.before = call, .after = task, .provenance = Provenance::measured, .why = Rule::launch});
    }
  }
  return graph;
}

double best_ms(const std::function<void()>& action) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    action();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

int run(std::uint32_t tasks) {
  Inference inference;
  inference.graph = make_job(tasks);
  inference.recorded = simulate(inference.graph);
  std::size_t resamples = 0;
  const double once = best_ms([&] { simulate(inference.graph, {.memory = false}); });
  const double aligned = best_ms([&] { StepVariation{inference}; });
  const StepVariation variation(inference);
  const double drawn = best_ms(
      [&] { resamples = resample(variation, inference.graph, inference.graph, {}).resamples; });
  std::printf("%-44s %10.1f ms\n", "simulate() once", once);
  std::printf("%-44s %10.1f ms\n", "steps put beside each other", aligned);
  std::printf("%-44s %10.1f ms   %.1f x simulate() once, at most 40 x\n",
              (std::to_string(resamples) + " resamples").c_str(), drawn, drawn / once);
  return 0;
}

}  // namespace
}  // namespace foretrace

int main(int argc, char** argv) {
  const foretrace::bench::Arguments arguments(argc, argv, "[tasks]");
  return foretrace::run(arguments.number<std::uint32_t>(1, 200'000));
}
