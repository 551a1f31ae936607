#pragma once

#include <string>
#include <vector>

#include "network/nccl/nccl.h"
#include "network/network.h"

namespace foretrace {

/// The placement of a network's ranks in the terms of NCCL and of calibrations. Bandwidths are GB/s
/// as the machine states them; the built-in machines state the bandwidths that NCCL assumes for
/// links.
struct RankPlaces {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;     ///< Groups of ranks that reach each other without a NIC.
  std::uint32_t per_node = 1;  ///< Ranks in the largest node.
  double intra = 0;            ///< Per rank within its node, with all ranks in a ring at once.
  double inter = 0;            ///< All NICs that the ranks of a node use, together; 0 for one node.
  std::uint32_t nics = 0;      ///< Number of these NICs; the number of ranks if there are no NICs.
  LinkKind kind = LinkKind::nvlink;  ///< Within the node: NVLink, or PCIe.
  /// Microseconds by which a message between hosts takes longer than over a leaf switch of
  /// InfiniBand, which NCCL's latencies contain.
  double extra_latency_us = 0;
};

/// `groups` is the number of groups like this one that share the NICs of each node at the same
/// time.
RankPlaces places_of(const Network& network, std::uint32_t groups = 1);

/// Appends to `assumed` a sentence for each fact that the machine does not state.
NcclSystem system_of(const Network& network, const RankPlaces& places,
                     std::vector<std::string>& assumed);

}  // namespace foretrace
