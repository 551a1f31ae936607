#pragma once

#include "foretrace/cluster.h"

namespace foretrace {

/// The most that the first half of the ranks can send to the second at once, the first having the
/// odd one: the maximum flow, which is the least cut (Boykov and Kolmogorov, PAMI 2004).
Bandwidth least_cut(const Cluster& cluster);

}  // namespace foretrace
