#pragma once

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// Adds a warning if a lane with priorities has more work in its steps than they are long. A lane
/// that runs one task at a time cannot do so. On a FIFO lane that is guaranteed, because steps
/// follow the fullest stream (see StepTimes); on a lane with priorities, work may run in another
/// step than the one it belongs to, and the step time then leaves it out. Linear.
void note_overfull_lanes(const Graph& graph, const Timeline& timeline, Notes& notes);

}  // namespace foretrace
