#pragma once

// Links as packets see them. Packets wait for a link either in a switch, where they may be dropped,
// or in their sender, where they may not.
//
//     host                    switch                    host
//     gpu -> pcie -> nic ===> [queue] ===> [queue] ===> nic -> pcie -> gpu
//     waits, loses nothing    16 MB for all its queues  waits, loses nothing

#include <cstdint>
#include <functional>
#include <vector>

#include "network/collective.h"
#include "network/network.h"

namespace foretrace {

struct PacketLink {
  static constexpr std::uint32_t kLossless = ~std::uint32_t{0};

  Bandwidth bandwidth{};
  Nanoseconds latency{0};
  /// The switch in whose memory packets wait for this link. kLossless: they wait in a host, which
  /// has room for all packets and pauses senders that are too fast, as PCIe, NVLink and a socket's
  /// buffer do.
  std::uint32_t memory = kLossless;
  bool is_first_hosts = false;  ///< A network cable of the first host: the one that may be bad.
};

using Path = std::vector<std::uint32_t>;

struct PacketPaths {
  std::vector<PacketLink> links;
  std::uint32_t memories = 0;  ///< Switches whose memory packets may wait in.
  /// Overwrites `out` with the paths of equal cost from one endpoint to another: with `all` up to
  /// kMostPaths of them, otherwise the one that ECMP takes. Throws Error where there is none.
  std::function<void(std::uint32_t from, std::uint32_t to, bool all, std::vector<Path>& out)> find;

  static constexpr std::uint32_t kMostPaths = 64;
};

/// Returns paths through one switch with a cable to each endpoint. Endpoints from `switches_from`
/// on are switches, which limit nothing.
PacketPaths uniform_paths(std::uint32_t endpoints, const LinkCost& cost,
                          std::uint32_t switches_from = ~std::uint32_t{0});
/// REQUIRES: the network outlives the paths. `seed` selects the paths of ECMP.
PacketPaths paths_of(const Network& network, std::uint64_t seed);

}  // namespace foretrace
