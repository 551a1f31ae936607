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

/// The steady steps of a replay: the path to the start of `last` counts from `from` to `to`, and is
/// divided by the number of steps. Without steps, `last` is kNoTask and all times count.
struct PathSpan {
  TaskId last = kNoTask;
  Nanoseconds from = Nanoseconds::min(), to = Nanoseconds::max();
  std::int64_t steps = 1;
};
PathSpan path_span(const Graph& graph, const Timeline& timeline);

/// Follows the path to the start of the last step, over the steady steps. Each instant counts for
/// the task of the path that started last. REQUIRES: the timeline has reasons.
PathShares path_shares(const Graph& graph, const Timeline& timeline, const PathSpan& span);
PathShares path_shares(const Graph& graph, const Timeline& timeline);

}  // namespace foretrace
