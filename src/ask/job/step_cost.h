#pragma once

// What a step costs, lane by lane and along the critical path. Of the steps that the step time is
// taken from.

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

/// Of each lane, in a step on average; where tasks overlap the one in front, once. What shared
/// lanes carry takes as long as at full capacity.
std::vector<Nanoseconds> lane_work(const Graph& graph);

/// Of what leads to the begin of the last step, between the begins of steady steps. Each instant
/// counts for the task of the path that started last. Needs `reasons`.
PathShares path_shares(const Graph& graph, const Timeline& timeline);

}  // namespace foretrace
