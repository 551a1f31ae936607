#pragma once

// Adds up what a step costs, lane by lane and along the critical path, over the steps that the step
// time is taken from.

#include <vector>

#include "foretrace/answer/advice.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// Numbers of steps, and how many that are; without steps the whole recording counts as one.
struct MeasuredSteps {
  std::int32_t first = 0, end = 0;
  bool all = false;  ///< Tasks of no step count, too.
  std::int64_t count = 1;

  bool has(const Task& task) const { return all || (task.step >= first && task.step < end); }
};
MeasuredSteps measured_steps(const Graph& graph);

/// Returns the work of each lane in an average step, overlapping time counted once. Transfers on
/// shared lanes take as long as at full capacity.
std::vector<Nanoseconds> lane_work(const Graph& graph);

/// Follows the path that leads to the start of the last step, over the steady steps. Each instant
/// counts for the task of the path that started last. Needs `reasons`.
PathShares path_shares(const Graph& graph, const Timeline& timeline);

}  // namespace foretrace
