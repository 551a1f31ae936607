#pragma once

// Links as packets see them. Packets wait for a link either in a switch, where they may be dropped,
// or in their sender, where they may not.
//
//     host                    switch                    host
//     gpu -> pcie -> nic ===> [queue] ===> [queue] ===> nic -> pcie -> gpu
//     waits, loses nothing    16 MB for all its queues  waits, loses nothing

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
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
  /// kMaxPaths of them, otherwise the one that ECMP takes. Throws Error where there is none.
  std::function<void(std::uint32_t from, std::uint32_t to, bool all, std::vector<Path>& out)> find;

  static constexpr std::uint32_t kMaxPaths = 64;
};

/// Returns paths through one switch with a cable to each endpoint. Endpoints from `switches_from`
/// on are switches, which limit nothing.
PacketPaths uniform_paths(std::uint32_t endpoints, const LinkCost& cost,
                          std::uint32_t switches_from = ~std::uint32_t{0});
/// REQUIRES: the network outlives the paths. `seed` selects the paths of ECMP.
PacketPaths paths_of(const Network& network, std::uint64_t seed);

// The paths between pairs of endpoints, found when a pair's first message begins. All paths lie in
// one array of hops, each with an end marker behind its links, so that one index gives the position
// of a packet.

class PairPaths {
 public:
  /// `all`: use every equal path of a pair instead of one. REQUIRES: `paths` outlives this.
  PairPaths(const PacketPaths& paths, bool all) : paths_(paths), all_(all) {}

  /// Returns the number of a pair.
  std::uint32_t between(std::uint32_t from, std::uint32_t to);
  std::uint32_t count(std::uint32_t pair) const { return pairs_[pair].count; }

  /// Returns the first hop of a path.
  std::uint32_t begin(std::uint32_t pair, std::uint32_t path) const {
    return begins_[pairs_[pair].first + path];
  }
  bool ends(std::uint32_t hop) const { return hops_[hop] == kEnd; }
  std::uint32_t link(std::uint32_t hop) const { return hops_[hop]; }
  std::span<const std::uint32_t> links(std::uint32_t pair, std::uint32_t path) const;

 private:
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};
  struct Pair {
    std::uint32_t first = 0, count = 0;  ///< Into `begins_`.
  };

  const PacketPaths& paths_;
  bool all_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
  std::vector<Pair> pairs_;
  std::vector<std::uint32_t> begins_, hops_;
  std::vector<Path> found_;
};

}  // namespace foretrace
