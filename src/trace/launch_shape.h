#pragma once

// The shapes of launches: which one a kernel has, and their fields by the names that our own
// formats write.

#include "foretrace/trace.h"

namespace foretrace {

/// Calls `visit(name, member)` for each.
template <class Visit>
void each_launch_field(Visit&& visit) {
  visit("grid_x", &LaunchShape::grid_x);
  visit("grid_y", &LaunchShape::grid_y);
  visit("grid_z", &LaunchShape::grid_z);
  visit("block_x", &LaunchShape::block_x);
  visit("block_y", &LaunchShape::block_y);
  visit("block_z", &LaunchShape::block_z);
  visit("registers", &LaunchShape::registers);
  visit("static_shared", &LaunchShape::static_shared);
  visit("dynamic_shared", &LaunchShape::dynamic_shared);
}

/// The shape of a kernel's launch. If only the totals are known, they are the first sizes.
inline LaunchShape launch_shape(const Trace& trace, const DeviceRecord& kernel) {
  if (kernel.launch != kNone) return trace.launches[kernel.launch];
  return {.grid_x = kernel.grid,
          .grid_y = 1,
          .grid_z = 1,
          .block_x = kernel.block,
          .block_y = 1,
          .block_z = 1};
}

}  // namespace foretrace
