#pragma once

// Adds up what a step costs, lane by lane and along the critical path, over the steps that the step
// time is taken from.

#include <vector>

#include "foretrace/answer/advice.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// A range of step numbers, and how many steps it contains; without steps, the whole recording
/// counts as one.
struct MeasuredSteps {
  std::int32_t first = 0, end = 0;
  bool all = false;  ///< Tasks without a step count, too.
  std::int64_t count = 1;

  bool has(const Task& task) const { return all || (task.step >= first && task.step < end); }
};
MeasuredSteps measured_steps(const Graph& graph);

/// Returns the work of each lane in an average step; overlapping time counts once. Transfers on
/// shared lanes count at full capacity.
std::vector<Nanoseconds> lane_work(const Graph& graph);

/// Follows the path to the start of the last step, over the steady steps. Each instant counts for
/// the task of the path that started last. REQUIRES: the timeline has reasons.
PathShares path_shares(const Graph& graph, const Timeline& timeline);

}  // namespace foretrace
