#pragma once

#include <cstdint>
#include <vector>

#include "network/network.h"

namespace foretrace {

using RingOrder = std::vector<std::uint32_t>;

/// Returns ring orders of the first `per_node` ranks, which share a node, such that each rank has
/// an NVLink to the next one and the last to the first. Together the orders use the cables between
/// devices as evenly as a greedy search manages; each order appears in both directions. On the
/// meshes of DGX-1V and GH200 they use all cables. Returns the single order 0 1 2 ... if devices
/// meet at a switch or on PCIe.
std::vector<RingOrder> nvlink_rings(const Network& network, std::uint32_t per_node);

}  // namespace foretrace
