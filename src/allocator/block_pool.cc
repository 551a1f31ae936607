#include "allocator/block_pool.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace foretrace {
namespace {

/// Finds the added blocks that live at the same time as another, without looking at all of them. A
/// tree: blocks are the leaves, in order of when they are made; each node knows when the last block
/// below it is freed.
class LifetimeTree {
 public:
  explicit LifetimeTree(const std::vector<PoolBlock>& blocks)
      : blocks_(blocks), by_made_(blocks.size()) {
    std::iota(by_made_.begin(), by_made_.end(), std::size_t{0});
    std::stable_sort(by_made_.begin(), by_made_.end(),
                     [&](std::size_t a, std::size_t b) { return blocks[a].made < blocks[b].made; });
    leaf_of_.resize(blocks.size());
    for (std::size_t leaf = 0; leaf < by_made_.size(); ++leaf) leaf_of_[by_made_[leaf]] = leaf;
    while (leaves_ < blocks.size()) leaves_ *= 2;
    last_.assign(2 * leaves_, std::numeric_limits<std::int64_t>::min());
  }

  void add(std::size_t block) {
    for (std::size_t node = leaves_ + leaf_of_[block]; node > 0; node /= 2)
      last_[node] = std::max(last_[node], blocks_[block].freed);
  }

  void find(std::size_t block, std::vector<std::size_t>& found) const {
    const auto behind = std::partition_point(
        by_made_.begin(), by_made_.end(),
        [&](std::size_t other) { return blocks_[other].made < blocks_[block].freed; });
    const auto end = static_cast<std::size_t>(behind - by_made_.begin());
    find({1, 0, leaves_}, end, blocks_[block].made, found);
  }

 private:
  struct Node {
    std::size_t number, first, count;  ///< `first` and `count` describe the leaves below it.
  };

  /// The recursion is as deep as the logarithm of the number of blocks.
  void find(Node node, std::size_t end, std::int64_t made, std::vector<std::size_t>& found) const {
    if (node.first >= end || last_[node.number] <= made) return;
    if (node.count == 1) return found.push_back(by_made_[node.first]);
    const std::size_t half = node.count / 2;
    find({2 * node.number, node.first, half}, end, made, found);
    find({2 * node.number + 1, node.first + half, half}, end, made, found);
  }

  const std::vector<PoolBlock>& blocks_;
  std::vector<std::size_t> by_made_, leaf_of_;
  std::vector<std::int64_t> last_;
  std::size_t leaves_ = 1;
};

bool takes_room(const PoolBlock& block) {
  return block.bytes > Bytes{} && block.made < block.freed;
}

/// Returns the lowest of the smallest gaps with room for `bytes` above `bottom` and between
/// `others`; if there is none, the place on top of them.
std::int64_t best_fit(std::int64_t bytes, std::int64_t bottom, std::vector<std::size_t>& others,
                      const std::vector<PoolBlock>& blocks,
                      const std::vector<std::int64_t>& offsets) {
  std::sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(offsets[a], a) < std::tuple(offsets[b], b);
  });
  std::int64_t top = bottom, best = -1, smallest = std::numeric_limits<std::int64_t>::max();
  for (const std::size_t other : others) {
    const std::int64_t gap = offsets[other] - top;
    if (gap >= bytes && gap < smallest) best = top, smallest = gap;
    top = std::max(top, offsets[other] + blocks[other].bytes.count);
  }
  return best >= 0 ? best : top;
}

}  // namespace

Bytes peak_load(const std::vector<PoolBlock>& blocks) {
  // At equal times, frees (negative) come first.
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  for (const PoolBlock& block : blocks) {
    if (!takes_room(block)) continue;
    changes.emplace_back(block.made, block.bytes.count);
    changes.emplace_back(block.freed, -block.bytes.count);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t load = 0, peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, load += change);
  return {peak};
}

PoolPlan plan_pool(const std::vector<PoolBlock>& blocks) {
  PoolPlan plan{.offsets = std::vector<std::int64_t>(blocks.size()),
                .footprint = {},
                .peak_load = foretrace::peak_load(blocks)};
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const PoolBlock& block : blocks) {
    if (takes_room(block)) begin = std::min(begin, block.made), end = std::max(end, block.freed);
  }
  std::vector<std::size_t> order;
  std::int64_t bottom = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!takes_room(blocks[i])) continue;
    if (blocks[i].made > begin || blocks[i].freed < end) {
      order.push_back(i);
    } else {
      plan.offsets[i] = bottom;
      bottom += blocks[i].bytes.count;
    }
  }
  // Blocks of equal size are sorted by time, which places them without gaps between them.
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(-blocks[a].bytes.count, blocks[a].made, a) <
           std::tuple(-blocks[b].bytes.count, blocks[b].made, b);
  });
  plan.footprint = Bytes{bottom};
  LifetimeTree placed_blocks(blocks);
  std::vector<std::size_t> others;
  for (const std::size_t block : order) {
    others.clear();
    placed_blocks.find(block, others);
    const std::int64_t bytes = blocks[block].bytes.count;
    plan.offsets[block] = best_fit(bytes, bottom, others, blocks, plan.offsets);
    plan.footprint = std::max(plan.footprint, Bytes{plan.offsets[block] + bytes});
    placed_blocks.add(block);
  }
  return plan;
}

}  // namespace foretrace
