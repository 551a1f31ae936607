#pragma once

// The paths between pairs of endpoints, each found when its first message begins. All lie in one
// row of hops, each with an end behind its links, so that a packet knows its place by one number.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "network/packet/paths.h"

namespace foretrace {

class PairPaths {
 public:
  /// `all`: every equal path of a pair, or else one. REQUIRES: `paths` outlives this.
  PairPaths(const PacketPaths& paths, bool all) : paths_(paths), all_(all) {}

  /// The number of a pair.
  std::uint32_t between(std::uint32_t from, std::uint32_t to);
  std::uint32_t count(std::uint32_t pair) const { return pairs_[pair].count; }

  /// The first hop of a path.
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
