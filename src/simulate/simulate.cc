#include "foretrace/simulate.h"

#include "simulate/clocked.h"
#include "simulate/pass.h"
#include "simulate/reasons.h"
#include "simulate/rows.h"
#include "simulate/waits.h"

namespace foretrace {
namespace {

/// Where all tasks stand in line no clock is needed.
Timeline replay_in_line(const Graph& graph) {
  const Rows rows = make_rows(graph);
  std::vector<Nanoseconds> finish(rows.task_count());
  Timeline timeline;
  timeline.length = pass(rows, finish);
  timeline.start.resize(finish.size());
  timeline.finish.resize(finish.size());
  for (std::size_t i = 0; i < finish.size(); ++i) {
    const std::uint32_t position = rows.position[i];
    timeline.finish[i] = finish[position];
    timeline.start[i] = finish[position] - rows.duration[position];
  }
  return timeline;
}

}  // namespace

Timeline simulate(const Graph& graph, const SimulateOptions& options) {
  std::vector<LetPass> let_pass;
  const bool in_line = lane_not_in_line(graph) == kNoLane;
  Timeline timeline = in_line ? replay_in_line(graph) : replay_clocked(graph, let_pass);
  if (options.reasons) timeline.reasons = find_reasons(graph, timeline, let_pass);
  if (options.memory) timeline.memory = memory_curves(graph, timeline);
  return timeline;
}

Nanoseconds replayed_step_time(const Graph& graph) {
  return step_times(graph, simulate(graph, {.reasons = false, .memory = false})).step_time;
}

}  // namespace foretrace
