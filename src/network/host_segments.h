#pragma once

// The parts of routes inside hosts: from each rank to the edge of its host, from the edge to the
// rank, and between ranks of one host.

#include <cstdint>
#include <span>
#include <vector>

#include "network/fabric.h"

namespace foretrace {

/// The links at one end of a route. The segments of a rank are sorted by cost.
struct HostSegment {
  PathCost cost = 0;
  std::uint32_t end = 0;               ///< A node outside the host, or the rank at the other end.
  std::uint32_t first = 0, count = 0;  ///< Into HostSegments::links.
};

struct HostSegments {
  struct RankSegments {
    std::vector<HostSegment> out, in, inside;
  };
  std::vector<RankSegments> ranks;
  std::vector<LinkId> links;

  std::span<const LinkId> links_of(const HostSegment& segment) const {
    return std::span(links).subspan(segment.first, segment.count);
  }
};

/// Returns the segments of all ranks. REQUIRES: hosts meet only at switches outside hosts. Among
/// NICs at equal distance a device uses the one with its own index, as NCCL does; the other NICs
/// get a slightly higher cost.
HostSegments host_segments(const Cluster& cluster);

}  // namespace foretrace
