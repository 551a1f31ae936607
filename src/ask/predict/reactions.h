#pragma once

// What the step time of a job hangs on: each kind of work gets faster by a tenth and by half, all
// else staying as it is, and the job is replayed. Work off the critical path moves nothing.

#include <vector>

#include "foretrace/answer/prediction_page.h"
#include "foretrace/graph.h"

namespace foretrace {

/// Of every kind of work that there is; `step_time` is that of the graph as it is.
std::vector<Reaction> reactions_of(const Graph& graph, Nanoseconds step_time);

}  // namespace foretrace
