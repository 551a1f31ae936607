#pragma once

// Links as packets see them: which wait in a switch, where they can be dropped, and which wait in
// their sender, where they cannot.
//
//     host                    switch                    host
//     gpu -> pcie -> nic ===> [queue] ===> [queue] ===> nic -> pcie -> gpu
//     waits, loses nothing    16 MB for all its queues  waits, loses nothing

#include <cstdint>
#include <functional>
#include <vector>

#include "foretrace/collective.h"
#include "foretrace/network.h"

namespace foretrace {

struct PacketLink {
  static constexpr std::uint32_t kLossless = ~std::uint32_t{0};

  Bandwidth bandwidth{};
  Nanoseconds latency{0};
  /// The switch in whose memory packets wait for this link; kLossless: they wait in a host, which
  /// has room for all and pauses who sends too fast, as PCIe, NVLink and a socket's buffer do.
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

/// A cable to each endpoint from one switch. Endpoints from `switches_from` on, which are switches,
/// limit nothing.
PacketPaths uniform_paths(std::uint32_t endpoints, const LinkCost& cost,
                          std::uint32_t switches_from = ~std::uint32_t{0});
/// REQUIRES: the network outlives the paths. ECMP by `seed`.
PacketPaths paths_of(const Network& network, std::uint64_t seed);

}  // namespace foretrace
