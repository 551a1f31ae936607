#pragma once

// Whether steps could be captured in CUDA graphs at all: a graph replays the same work on the same
// shapes, and whatever the host has to read before it can go on lies between two graphs.

#include <string>

#include "foretrace/graph.h"

namespace foretrace {

/// Why no capture would hold, in words; empty if nothing speaks against it:
///
///   - graphs that are captured or launched already
///   - results whose sizes depend on their data, which the host reads (nonzero, unique ...)
///   - exchanges of all to all whose sizes the host reads from the device
///   - collectives that the host waits for
///
/// Of the steady steps. A loss that is read, at the end of a step, is none of these.
std::string hinders_capture(const Graph& graph);

}  // namespace foretrace
