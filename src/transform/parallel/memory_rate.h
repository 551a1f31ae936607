#pragma once

#include <string>

#include "foretrace/graph.h"
#include "foretrace/machine.h"
#include "foretrace/transform.h"

namespace foretrace {

/// Returns the memory bandwidth of the device in `context` or, if there is none, of the recorded
/// device. Throws Error if that is unknown; the message begins with `wanted_for`.
Bandwidth memory_rate(const Graph& graph, const Context& context, const std::string& wanted_for);

}  // namespace foretrace
