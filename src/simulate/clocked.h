#pragma once

#include <vector>

#include "foretrace/timeline.h"

namespace foretrace {

/// A task on a shared or priority lane that could have started earlier, and the task that ran
/// before it.
struct OvertakenTask {
  TaskId task;
  TaskId overtaker;
};

/// Replays a graph with shared or priority lanes. Fills start, finish and length of the result, and
/// appends to `overtaken`.
Timeline replay_clocked(const Graph& graph, std::vector<OvertakenTask>& overtaken);

}  // namespace foretrace
