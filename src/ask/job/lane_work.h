#pragma once

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// A lane that runs one task at a time cannot do more work in a step than the step is long. On a
/// FIFO lane that holds by itself, as steps follow the fullest stream (see StepTimes); on one with
/// priorities work may run in another step than it belongs to, and the step time leaves it out.
/// Adds a warning then. Linear.
void note_overfull_lanes(const Graph& graph, const Timeline& timeline, Notes& notes);

}  // namespace foretrace
