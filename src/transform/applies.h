#pragma once

// Whether the graph is of a job that a change is meant for, where several transforms ask the same.

#include "foretrace/graph.h"
#include "foretrace/transform.h"

namespace foretrace {

/// For changes that a framework makes: they do not apply where there are kernels, but none of a
/// framework.
Applicability applies_to_frameworks(const Graph& graph);

/// For changes of sequences and of the blocks of a transformer: they do not apply to jobs of no
/// framework, and to networks of convolutions.
Applicability applies_to_sequences(const Graph& graph);

}  // namespace foretrace
