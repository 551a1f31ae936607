#pragma once

// Why the prediction takes as long as it does: the chain of tasks that ends last, and the reason
// for the wait of each.

#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The critical path with tasks of one name, lane and reason taken together: the `most` that work
/// longest and those that wait longest, in order of their first starts. Needs `reasons`.
std::vector<Explained> explain(const Graph& graph, const Timeline& timeline, std::size_t most = 12);

}  // namespace foretrace
