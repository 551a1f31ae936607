#pragma once

// Turns groups of tasks into one task each, the way a fused kernel takes the place of many.

#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "transform/edit/edit.h"

namespace foretrace {

struct Fusion {
  Group tasks;           ///< On one lane, in its order. The first becomes the fused task.
  Nanoseconds duration;  ///< The fused task takes this long.
};

struct FusionCount {
  std::size_t tasks = 0;     ///< Tasks removed.
  std::size_t launches = 0;  ///< Launch calls removed.
};

/// Fuses each group. The fused task takes the place of the first, moves the bytes of all, and is
/// called `name` unless that is empty. It waits for everything on other lanes that one of the group
/// waited for, and everything that waited for one of the group waits for it. With `launches`, it
/// waits only for the launch of the first, and calls that launched nothing else are removed.
FusionCount fuse(Graph& graph, const std::vector<Fusion>& fusions, NameId name, bool launches);

}  // namespace foretrace
