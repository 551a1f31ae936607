#pragma once

// Calls that copy from or to pageable memory wait for the copy, by themselves or by a call behind
// them; from or to pinned memory they return at once.

#include "transform/edit/edit.h"

namespace foretrace {

/// Drops the waits of the host that belong to the calls of `copies`: those of the calls and of what
/// directly follows them, and of the calls for what is in front of the copies. Waiting for the
/// whole device is the program's own and stays. Returns how many. Linear in all dependencies.
std::size_t drop_waits_for_copies(Graph& graph, const Launches& launches,
                                  const std::vector<TaskId>& copies);

}  // namespace foretrace
