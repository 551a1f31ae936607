#pragma once

// Finds how far waits reach: with tasks numbered in an order, a task that waits for none with a
// greater number can precede it.

#include <cstddef>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Returns, for each task, the greatest number of a task that it is, or that it waits for directly
/// or indirectly; its place on a FIFO lane is a wait too. `numbers` has an element for each task of
/// the graph. Throws Error if tasks wait for each other in a cycle. Linear.
std::vector<std::size_t> greatest_awaited(const Graph& graph, std::vector<std::size_t> numbers);

}  // namespace foretrace
