#include "network/collectives/nvlink_rings.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace foretrace {
namespace {

/// Limit on the steps of one search, which is exponential.
constexpr std::uint32_t kMaxTried = 100'000;

/// The unused cables between each pair of ranks of a node.
class Cables {
 public:
  Cables(const Network& network, std::uint32_t ranks) : ranks_(ranks), left_(ranks * ranks) {
    const Cluster& cluster = network.cluster();
    std::map<std::uint32_t, std::uint32_t> rank_of;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) rank_of[cluster.placement[rank]] = rank;
    for (const ClusterLink& link : network.links()) {
      if (link.kind != LinkKind::nvlink) continue;
      const auto from = rank_of.find(link.from), to = rank_of.find(link.to);
      if (from != rank_of.end() && to != rank_of.end())
        left(from->second, to->second) += link.count;
    }
  }

  /// Returns a ring that prefers pairs with many unused cables; empty if there is none.
  RingOrder take_ring() {
    RingOrder ring = {0};
    std::uint32_t tried = 0;
    if (!extend(ring, tried)) return {};
    for (std::uint32_t i = 0; i < ranks_; ++i) {
      const std::uint32_t a = ring[i], b = ring[(i + 1) % ranks_];
      --left(a, b), --left(b, a);
    }
    return ring;
  }

 private:
  std::uint32_t& left(std::uint32_t from, std::uint32_t to) { return left_[from * ranks_ + to]; }

  bool extend(RingOrder& ring, std::uint32_t& tried) {
    const std::uint32_t end = ring.back();
    if (ring.size() == ranks_) return left(end, 0) > 0;
    std::vector<std::uint32_t> next;
    for (std::uint32_t rank = 1; rank < ranks_; ++rank) {
      if (left(end, rank) > 0 && std::ranges::count(ring, rank) == 0) next.push_back(rank);
    }
    std::ranges::stable_sort(
        next, [&](std::uint32_t a, std::uint32_t b) { return left(end, a) > left(end, b); });
    for (const std::uint32_t rank : next) {
      if (++tried > kMaxTried) return false;
      ring.push_back(rank);
      if (extend(ring, tried)) return true;
      ring.pop_back();
    }
    return false;
  }

  std::uint32_t ranks_;
  std::vector<std::uint32_t> left_;
};

}  // namespace

std::vector<RingOrder> nvlink_rings(const Network& network, std::uint32_t per_node) {
  std::map<RingOrder, std::uint32_t> times;
  if (per_node > 2) {
    Cables cables(network, per_node);
    for (RingOrder ring = cables.take_ring(); !ring.empty(); ring = cables.take_ring()) {
      if (ring.back() < ring[1]) std::reverse(ring.begin() + 1, ring.end());
      ++times[ring];
    }
  }
  if (times.empty()) {
    RingOrder order(per_node);
    std::iota(order.begin(), order.end(), 0U);
    return {order};
  }
  std::uint32_t common = 0;
  for (const auto& [ring, count] : times) common = std::gcd(common, count);
  std::vector<RingOrder> rings;
  for (const auto& [ring, count] : times) {
    RingOrder back = ring;
    std::reverse(back.begin() + 1, back.end());
    for (std::uint32_t i = 0; i < count / common; ++i) rings.push_back(ring), rings.push_back(back);
  }
  return rings;
}

}  // namespace foretrace
