// all-reduce    2 log2 p alpha + 2 n beta            for many chunks; Sanders, Speck, Traff 2009
// There are two binary trees, each for half of the data. An inner rank of one tree is a leaf of the
// other, so that all ports are busy. A chunk climbs one level every `lag` rounds and descends at
// the same rate:
//
//     up      chunk c leaves depth d in round c + lag (height - d)
//     down    chunk c leaves depth d in round c + lag (height + d)
//
// The trees are NCCL's: in the first, rank 0 stands above the in-order binary tree; the second is
// its mirror image (shifted by one for an odd number of ranks). With two levels, as on nodes with
// several devices, the first ranks of the groups form the trees, and the other ranks of a group
// form a chain below:
//
//     levels 2,4     0 over 4, 4 over 2 and 6; and 1, 3, 5, 7 each below the one before
//
// The expansion includes the time to fill the pipeline.

#include <algorithm>
#include <bit>
#include <cmath>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMinChunk = 2048;  ///< Bytes; our choice.
constexpr std::int64_t kMaxChunks = 512;  ///< For each half; our choice.

struct TreePosition {
  std::uint32_t depth = 0;
  std::uint32_t parent = 0;
  std::uint32_t children[3] = {0, 0, 0};
  std::uint32_t child_count = 0;
};

/// The parent of a rank other than 0 follows from its lowest set bit.
std::uint32_t parent_of(std::uint32_t rank, std::uint32_t ranks) {
  const std::uint32_t bit = rank & (~rank + 1);
  const std::uint32_t up = (rank ^ bit) | (bit << 1);
  return up >= ranks ? rank ^ bit : up;
}

TreePosition position_in(std::uint32_t rank, std::uint32_t ranks) {
  TreePosition position;
  for (std::uint32_t at = rank; at != 0; at = parent_of(at, ranks)) ++position.depth;
  if (rank == 0) {
    if (ranks > 1) position.children[position.child_count++] = std::bit_ceil(ranks) >> 1;
    return position;
  }
  position.parent = parent_of(rank, ranks);
  std::uint32_t low = (rank & (~rank + 1)) >> 1;
  if (low == 0) return position;
  position.children[position.child_count++] = rank - low;
  while (low != 0 && rank + low >= ranks) low >>= 1;
  if (low != 0) position.children[position.child_count++] = rank + low;
  return position;
}

/// Ranks per chain, and number of chains.
struct Levels {
  std::uint32_t chain = 1, heads = 1;
  std::uint32_t height() const { return ceil_log2(heads) + chain - 1; }
};

Levels levels_of(const Call& call) {
  if (call.levels.size() != 2) return {1, call.ranks};
  return {call.levels[0], call.levels[1]};
}

/// A rank's position in the tree of chain heads, each followed by its chain.
TreePosition position_with_chain(std::uint32_t head, std::uint32_t along, const Levels& levels) {
  TreePosition position = position_in(head, levels.heads);
  const std::uint32_t g = levels.chain;
  position.depth += along;
  if (along > 0) {
    position.parent = head * g + along - 1;
    position.child_count = 0;
  } else {
    position.parent *= g;
    for (std::uint32_t i = 0; i < position.child_count; ++i) position.children[i] *= g;
  }
  if (along + 1 < g) position.children[position.child_count++] = head * g + along + 1;
  return position;
}

class DoubleTree final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string served = unsupported_operation(call.operation, {Operation::all_reduce});
    const bool divides =
        call.levels.size() != 2 || std::uint64_t{call.levels[0]} * call.levels[1] == call.ranks;
    if (!served.empty() || divides) return served;
    return "takes two levels whose product is " + std::to_string(call.ranks);
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    if (call.ranks < 2) return Nanoseconds(0);
    const double n = static_cast<double>(call.bytes.count);
    return hockney(2 * levels_of(call).height(), 2 * n, 0, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts costs) const override {
    if (call.ranks < 2) return {.endpoints = call.ranks};
    const LinkCost& cost = cost_at(costs, 0);
    const std::int64_t chunks =
        std::clamp(call.bytes.count / 2 / kMinChunk, std::int64_t{1}, kMaxChunks);
    // Each port passes four chunks per round; a level takes the time of one chunk plus its latency.
    const double chunk = static_cast<double>(call.bytes.count) / 2 / static_cast<double>(chunks) *
                         1e9 / cost.bandwidth.bytes_per_second;
    const double lag = 1 + static_cast<double>(cost.latency.count()) / std::max(4 * chunk, 1.0);
    const auto levels = static_cast<std::uint32_t>(std::min(std::ceil(lag), 1024.0));
    return {.endpoints = call.ranks,
            .rounds = static_cast<std::uint32_t>(chunks) + 2 * levels * levels_of(call).height(),
            .chunks = static_cast<std::uint32_t>(chunks),
            .lag = levels};
  }

  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    for (std::uint32_t tree = 0; tree < 2; ++tree) sends_in(call, plan, tree, rank, round, out);
  }

 private:
  /// Maps a rank to its number within a tree, and back. Mirroring is its own inverse.
  static std::uint32_t relabeled(std::uint32_t tree, std::uint32_t rank, std::uint32_t ranks,
                                 std::uint32_t shift) {
    if (tree == 0) return rank;
    return ranks % 2 == 0 ? ranks - 1 - rank : (rank + shift) % ranks;
  }

  static void sends_in(const Call& call, const Plan& plan, std::uint32_t tree, std::uint32_t rank,
                       std::uint32_t round, std::vector<Message>& out) {
    const Levels levels = levels_of(call);
    const std::uint32_t g = levels.chain, p = levels.heads, height = levels.height();
    const TreePosition position =
        position_with_chain(relabeled(tree, rank / g, p, p - 1), rank % g, levels);
    const auto add = [&](std::uint32_t to, std::uint32_t chunk, bool reduces) {
      const Bytes half = part_of(call.bytes, 2, tree);
      out.push_back({.to = relabeled(tree, to / g, p, 1) * g + to % g,
                     .bytes = part_of(half, plan.chunks, chunk),
                     .reduces = reduces,
                     .streams = true});
    };
    const std::uint32_t down = plan.lag * (height + position.depth);
    if (round >= down && round - down < plan.chunks) {
      for (std::uint32_t i = 0; i < position.child_count; ++i)
        add(position.children[i], round - down, false);
    }
    const std::uint32_t up = plan.lag * (height - position.depth);
    if (position.depth > 0 && round >= up && round - up < plan.chunks)
      add(position.parent, round - up, true);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_double_tree_algorithm() { return std::make_unique<DoubleTree>(); }

}  // namespace foretrace
