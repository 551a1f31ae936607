#pragma once

// Turns groups of tasks into one task each, the way a fused kernel takes the place of many.

#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "transform/edit/edit.h"

namespace foretrace {

struct Fusion {
  Group tasks;           ///< On one lane, in order of the line. The first becomes the fused task.
  Nanoseconds duration;  ///< The fused task takes this long.
};

struct FusionCount {
  std::size_t tasks = 0;     ///< That are gone.
  std::size_t launches = 0;  ///< That are gone.
};

/// The fused task stands at the place of the first, moves the bytes of all, waits for whatever one
/// of them waited for on other lanes, and holds back whatever waited for one of them. With
/// `launches`, it waits for the launch of the first only, and the calls that launched nothing else
/// are removed.
FusionCount fuse(Graph& graph, const std::vector<Fusion>& fusions, NameId name, bool launches);

}  // namespace foretrace
