#pragma once

// A call that copies from or to pageable memory blocks the host: the call, or one behind it, waits
// for the copy. With pinned memory the call returns at once.

#include "transform/edit/edit.h"

namespace foretrace {

/// Removes the dependencies that block the host because of `copies`: on a copy, by the host task
/// that waits behind its call with only host work in between; and on earlier device work, by a
/// synchronization directly in front of the call. A synchronization of the whole device behind the
/// call is the program's own and stays. Returns how many dependencies were removed. Linear in all
/// dependencies.
std::size_t drop_waits_for_copies(Graph& graph, const Launches& launches,
                                  const std::vector<TaskId>& copies);

}  // namespace foretrace
