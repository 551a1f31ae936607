#pragma once

// Finds how much of each device's memory a timeline needs, and whether there is enough.

#include <vector>

#include "foretrace/allocator.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// Returns a peak for each device with allocations. The caching allocator is replayed for all
/// devices except the host.
std::vector<MemoryPeak> memory_peaks(const Graph& graph, const Timeline& timeline,
                                     const AllocatorSettings& settings);

/// Sets MemoryPeak::unknown_use. Memory from before the recording without blocks of its own is of
/// unknown use, too.
void find_unknown_use(const Graph& graph, const Timeline& timeline, std::vector<MemoryPeak>& peaks);

}  // namespace foretrace
