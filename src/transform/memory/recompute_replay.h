#pragma once

// Carries out a plan of recompute_plan.h: inserts copies of forward work, in order, before the
// first backward use; inserts their launches, with the host work around them, before the launch of
// that use; and cuts the lifetimes of dropped blocks in two.
//
//     cpu     LA LB LC | .. LA' LB' Lc        stream   A B C .. A' B' c

#include "transform/memory/recompute_plan.h"

namespace foretrace {

struct RecomputeTally {
  std::size_t kernels = 0;     ///< Device tasks that run again.
  Nanoseconds device_time{0};  ///< Time of those tasks.
  Nanoseconds host_time{0};    ///< Time that the host spends on launching them.
};

/// REQUIRES: `view` shows `graph` before the edit. With `host_work`, the host also repeats its work
/// before each launch, otherwise only the launches.
RecomputeTally replay_recompute(Graph& graph, const MemoryView& view, const RecomputePlan& plan,
                                bool host_work);

}  // namespace foretrace
