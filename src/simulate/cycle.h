#pragma once

#include "foretrace/graph.h"

namespace foretrace {

/// Throws an Error that explains why tasks of `graph` can never run, by naming a shortest cycle.
[[noreturn]] void throw_stuck(const Graph& graph);

}  // namespace foretrace
