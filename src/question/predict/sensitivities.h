#pragma once

// How the step time of a job reacts if each kind of work gets faster by a tenth or by half, with
// everything else unchanged, from replays. Work off the critical path has no effect.

#include <vector>

#include "foretrace/answer/prediction_page.h"
#include "foretrace/graph.h"

namespace foretrace {

/// Returns a sensitivity for every kind of work in the graph; `step_time` is that of the unchanged
/// graph.
std::vector<Sensitivity> sensitivities_of(const Graph& graph, Nanoseconds step_time);

}  // namespace foretrace
