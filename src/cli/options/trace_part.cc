#include "cli/options/trace_part.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "foretrace/error.h"
#include "foretrace/infer.h"

namespace foretrace {
namespace {

/// Returns the time of these steps in a trace without step markers: the steps that infer() finds,
/// numbered from 0. Throws Error if there are fewer.
Window window_of_found_steps(const Trace& trace, StepRange steps) {
  const Inference inference = infer(trace, {.memory = false});
  const Graph& graph = inference.graph;
  const auto count = static_cast<std::int64_t>(graph.steps().size());
  if (steps.last >= count) {
    if (count == 0)
      throw Error("--steps: no steps were found in this trace; --window cuts by time");
    throw Error(
        fmt::format("--steps: must be between 0 and {}, the steps found in this trace, got {}-{}",
                    count - 1, steps.first, steps.last));
  }
  Window window{std::numeric_limits<std::int64_t>::max(), 0};
  for (const bool on_host : {true, false}) {
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      const Task& task = graph.task(static_cast<TaskId>(i));
      if (task.step < steps.first || task.step > steps.last) continue;
      if (runs_on_device(task.kind) == on_host) continue;
      window.begin_ns = std::min(window.begin_ns, inference.recorded.start[i].count());
      window.end_ns = std::max(window.end_ns, inference.recorded.finish[i].count());
    }
    if (window.end_ns > window.begin_ns) return window;
  }
  throw Error("--steps: the steps hold no work");
}

}  // namespace

void cut_to(const Part& part, std::vector<Trace>& traces) {
  for (Trace& trace : traces) {
    if (part.window) {
      trace = within("--window", [&] { return cut(trace, *part.window); });
    } else if (part.steps) {
      const auto marked = within("--steps", [&] { return window_of_steps(trace, *part.steps); });
      trace = cut(trace, marked ? *marked : window_of_found_steps(trace, *part.steps));
    }
  }
}

}  // namespace foretrace
