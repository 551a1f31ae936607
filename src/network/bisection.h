#pragma once

#include "foretrace/cluster.h"

namespace foretrace {

/// Returns the highest bandwidth from the first half of the ranks to the second half. With an odd
/// number of ranks the first half has one more. It is computed as a maximum flow, which equals the
/// minimum cut (Boykov and Kolmogorov, PAMI 2004).
Bandwidth least_cut(const Cluster& cluster);

}  // namespace foretrace
