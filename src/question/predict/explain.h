#pragma once

// Explains why the prediction takes as long as it does: the chain of tasks that ends last, and what
// each waited for.

#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The critical path, with tasks of the same name, lane and reason grouped: the `most` entries that
/// work longest and those that wait longest, sorted by first start. REQUIRES: the timeline has
/// reasons.
std::vector<Explained> explain(const Graph& graph, const Timeline& timeline, std::size_t most = 12);

}  // namespace foretrace
