#pragma once

#include "foretrace/graph.h"

namespace foretrace {

/// Throws the Error that says why tasks of `graph` can never run: it names a shortest cycle.
[[noreturn]] void throw_stuck(const Graph& graph);

}  // namespace foretrace
