#pragma once

// A timeline as a trace: what a profiler would have recorded, had the tasks run at these times. It
// is the inverse of infer.h, so that a prediction opens in the viewers of traces and is read back
// as any recording is. Causes are told as a profiler tells them: correlation ids of launches,
// synchronization records of waits, and calls that wait drawn for as long as they wait.

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

/// `recorded` is the trace that the graph was inferred from. It tells ops from annotations and
/// frames, which are all ops without it. Linear but for sorting.
Trace render(const Graph& graph, const Timeline& timeline, const Trace* recorded = nullptr);

}  // namespace foretrace
