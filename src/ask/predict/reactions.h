#pragma once

// How the step time of a job reacts: each kind of work gets faster by a tenth and by half, with
// everything else unchanged, and the job is replayed. Work off the critical path has no effect.

#include <vector>

#include "foretrace/answer/prediction_page.h"
#include "foretrace/graph.h"

namespace foretrace {

/// For every kind of work in the graph; `step_time` is that of the unchanged graph.
std::vector<Reaction> reactions_of(const Graph& graph, Nanoseconds step_time);

}  // namespace foretrace
