#pragma once

// Whether steps could be captured in CUDA graphs at all: a graph replays the same work on the same
// shapes, and a value that the host must read separates two graphs.

#include <string>

#include "foretrace/graph.h"

namespace foretrace {

/// The reason why no capture would work, in words; empty if there is none:
///
///   - graphs that are captured or launched already
///   - results whose sizes depend on their data, which the host reads (nonzero, unique ...)
///   - all-to-all exchanges whose sizes the host reads from the device
///   - collectives that the host waits for
///
/// Only steady steps count. Reading the loss at the end of a step does not prevent capture.
std::string capture_obstacle(const Graph& graph);

}  // namespace foretrace
