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
/// Only steady steps count. Reading the loss at the end of a step does not hinder capture.
std::string hinders_capture(const Graph& graph);

}  // namespace foretrace
