#pragma once

// Finds the stretches of host work that a captured CUDA graph could replace: those that only launch
// kernels.

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "transform/edit/edit.h"

namespace foretrace {

/// Host work of one step that can be replaced by one launch.
struct Region {
  std::vector<TaskId> launches;  ///< In order of time. The first becomes the launch of the graph.
  std::vector<TaskId> host;      ///< Work between the launches, which the graph saves.
};

/// Counts, by cause, the stretches that had to end inside a step.
struct Cuts {
  std::size_t waits = 0;   ///< The host waits for the device, or loads input.
  std::size_t copies = 0;  ///< A copy from or to host memory.
  std::size_t loads = 0;   ///< The host compiles or loads code, which it does only once.
  std::size_t others = 0;  ///< A launch of work that was not selected.
};

/// `captured[task]` marks the device tasks that may become part of a graph. With `phases`, a region
/// ends where the phase of its thread changes. Without, a thread that another one hands work to and
/// waits for (autograd) joins the region of that other thread.
std::vector<Region> find_regions(const Graph& graph, const Launches& launches,
                                 const std::vector<char>& captured, bool phases, Cuts& cuts);

}  // namespace foretrace
