#include "ask/scale/assumed_job.h"

#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// Number of steps, enough for a median, and of pieces of a backward pass, so that buckets can
/// begin anywhere.
constexpr int kSteps = 4, kPieces = 400;
/// Assumed share of the update, which reads and writes weights, gradients and the optimizer's
/// state: a few percent in the steps that were examined. Chosen.
constexpr double kUpdate = 0.02;

}  // namespace

Inference assumed_job(Nanoseconds step_time, std::optional<Nanoseconds> update_time,
                      const std::string& device) {
  if (step_time <= 0ns)
    throw Error(fmt::format("--step-time: must be above 0, got {}", to_text(step_time)));
  if (update_time && (*update_time < 0ns || *update_time >= step_time))
    throw Error(fmt::format("--update-time: must be less than the step, which takes {}, got {}",
                            to_text(step_time), to_text(*update_time)));
  Inference job;
  Graph& graph = job.graph;
  const LaneId stream = graph.add_lane({.name = "stream", .kind = LaneKind::stream, .device = 0});
  graph.device_names() = {device.empty() ? std::string() : find_device(device).name};
  const Nanoseconds update = update_time.value_or(scaled(step_time, kUpdate));
  const Nanoseconds passes = step_time - update;
  const auto add = [&](std::string_view name, Phase phase, int step, Nanoseconds time) {
    graph.append(stream, {.duration = time,
                          .name = graph.names().intern(name),
                          .step = step,
                          .kind = TaskKind::kernel,
                          .phase = phase});
  };
  for (int step = 0; step < kSteps; ++step) {
    graph.steps().push_back({"step " + std::to_string(step)});
    add("forward", Phase::forward, step, passes / 3);
    Nanoseconds remaining = passes - passes / 3;
    for (int piece = kPieces; piece > 0; --piece) {
      const Nanoseconds time = remaining / piece;
      add("backward", Phase::backward, step, time);
      remaining -= time;
    }
    add("update", Phase::update, step, update);
  }
  graph.step_rule().source = StepSource::markers;
  job.recorded = simulate(graph);
  graph.unexplained().window = job.recorded.length;
  set_step_rule(graph, job.recorded);
  job.assumptions = {fmt::format(
      "no trace was given: the update takes {}{}, the forward pass a third of the rest, "
      "the backward pass two thirds, and gradients become ready evenly over it",
      to_text(update), update_time ? "" : " (2 % of the step, a guess; --update-time states it)")};
  return job;
}

}  // namespace foretrace
