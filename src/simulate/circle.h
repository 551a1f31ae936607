#pragma once

#include "foretrace/graph.h"

namespace foretrace {

/// Throws the Error that names a shortest circle of `graph`, which has one.
[[noreturn]] void throw_circle(const Graph& graph);

}  // namespace foretrace
