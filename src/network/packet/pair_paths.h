#pragma once

// The paths between pairs of endpoints, found when a pair's first message begins. All paths lie in
// one array of hops, each with an end marker behind its links, so that one index gives the position
// of a packet.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "network/packet/paths.h"

namespace foretrace {

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
