#pragma once

// The parts of routes that lie inside of hosts: how each rank gets to where its host ends, from
// there, and to the other ranks of its host.

#include <cstdint>
#include <span>
#include <vector>

#include "network/fabric.h"

namespace foretrace {

/// Links at one end of a route. Legs of a rank are sorted by cost.
struct Leg {
  PathCost cost = 0;
  std::uint32_t end = 0;  ///< A node outside of the host; or the rank at the other end.
  std::uint32_t first = 0, count = 0;  ///< Into Legs::links.
};

struct Legs {
  struct OfRank {
    std::vector<Leg> out, in, inside;
  };
  std::vector<OfRank> ranks;
  std::vector<LinkId> links;

  std::span<const LinkId> links_of(const Leg& leg) const {
    return std::span(links).subspan(leg.first, leg.count);
  }
};

/// For clusters whose hosts meet only at switches outside of hosts. Of NICs that are equally near,
/// a device takes the one with its own number among those, as NCCL does; the others cost a little
/// more.
Legs legs_of(const Cluster& cluster);

}  // namespace foretrace
