#pragma once

#include <string>
#include <vector>

#include "foretrace/network.h"
#include "network/nccl/nccl.h"

namespace foretrace {

/// How the ranks of a network lie, in the terms of NCCL and of calibrations. Bandwidths are GB/s as
/// the machine states them; the built-in machines state those that NCCL takes links for.
struct RankPlaces {
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;           ///< Groups that reach each other without a NIC.
  std::uint32_t per_node = 1;        ///< Ranks in the largest of them.
  double intra = 0;                  ///< A rank within its node, with all ranks in a ring at once.
  double inter = 0;                  ///< All NICs that the ranks of a node use; 0 for one node.
  std::uint32_t nics = 0;            ///< How many these are; without NICs, one for each rank.
  LinkKind kind = LinkKind::nvlink;  ///< Within the node: NVLink, or PCIe.
};

/// `groups`: so many like these ranks share the NICs of each node, all at the same time.
RankPlaces places_of(const Network& network, std::uint32_t groups = 1);

/// Appends to `assumed` a sentence for each fact that the machine does not state.
NcclSystem system_of(const Network& network, const RankPlaces& places,
                     std::vector<std::string>& assumed);

}  // namespace foretrace
