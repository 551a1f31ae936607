#pragma once

// Finds what a captured CUDA graph could replace: stretches of host work that only launch.

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "transform/edit/edit.h"

namespace foretrace {

/// Host work of one step that can be replaced by one launch.
struct Region {
  std::vector<TaskId> launches;  ///< In order of time. The first becomes the launch of the graph.
  std::vector<TaskId> host;      ///< Work between them that is no longer done.
};

/// Why a stretch had to end inside a step.
struct Cuts {
  std::size_t waits = 0;   ///< The host waits for the device, or loads input.
  std::size_t copies = 0;  ///< A copy from or to host memory.
  std::size_t others = 0;  ///< Launches of what was not selected.
};

/// `captured[task]` marks the device tasks that may become part of a graph. Phases: a region ends
/// where the phase of a thread changes. Otherwise threads that a thread hands over to and waits for
/// (autograd) join its region.
std::vector<Region> find_regions(const Graph& graph, const Launches& launches,
                                 const std::vector<char>& captured, bool phases, Cuts& cuts);

}  // namespace foretrace
