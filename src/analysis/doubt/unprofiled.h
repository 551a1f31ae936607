#pragma once

#include "foretrace/graph.h"

namespace foretrace {

/// The step time without the recorder's own work on the host; 0 if the recording does not show how
/// much that is. Costs a little more than a replay.
Nanoseconds unprofiled_step_time(const Graph& graph);

}  // namespace foretrace
