#pragma once

#include <string>

#include "foretrace/graph.h"
#include "foretrace/machine.h"
#include "foretrace/transform.h"

namespace foretrace {

/// How fast the device reads and writes its memory: of the machine that is asked for, or else of
/// the recorded device. Throws Error where it is not known; `wanted_for` begins the message.
Bandwidth memory_rate(const Graph& graph, const Context& context, const std::string& wanted_for);

}  // namespace foretrace
