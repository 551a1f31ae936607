#include "infer/memory/snapshot_weights.h"

#include <algorithm>
#include <map>
#include <utility>

namespace foretrace::infer_detail {
namespace {

using DeviceAndSize = std::pair<std::int32_t, std::int64_t>;

/// Device and requested size, because the allocator may serve equal requests with unequal blocks.
DeviceAndSize size_of(const Allocation& block) {
  return {block.device, block.requested > Bytes{} ? block.requested.count : block.bytes.count};
}

/// Whether a block is a gradient: also one that the backward pass makes and the history never
/// frees, as at the end of the history.
bool is_gradient(const Allocation& block, const BlockSites& sites) {
  if (!sites.made.exists()) return false;
  if (block.use == MemoryUse::gradient) return true;
  return block.use == MemoryUse::unknown && sites.made.phase == Phase::backward &&
         !sites.freed.exists();
}

/// Returns the greatest number of gradients of each size that exist at the same time.
std::map<DeviceAndSize, std::int64_t> gradients_at_once(const std::vector<Allocation>& blocks,
                                                        const std::vector<BlockSites>& sites) {
  std::map<DeviceAndSize, std::map<std::int64_t, std::int64_t>> changes;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (!is_gradient(blocks[i], sites[i])) continue;
    std::map<std::int64_t, std::int64_t>& of_size = changes[size_of(blocks[i])];
    ++of_size[sites[i].made.time];
    if (sites[i].freed.exists()) --of_size[sites[i].freed.time];
  }
  std::map<DeviceAndSize, std::int64_t> most;
  for (const auto& [size, times] : changes) {
    std::int64_t count = 0;
    for (const auto& [time, change] : times) most[size] = std::max(most[size], count += change);
  }
  return most;
}

}  // namespace

bool infer_weights(std::vector<Allocation>& blocks, const std::vector<BlockSites>& sites,
                   std::int64_t first_forward, bool is_forward_only) {
  const auto existed_before = [&](std::size_t i) {
    return i >= sites.size() || !sites[i].made.exists();
  };
  const auto spans_history = [&](std::size_t i) {
    if (i < sites.size() && sites[i].freed.exists()) return false;
    return existed_before(i) || sites[i].made.time < first_forward;
  };
  std::map<DeviceAndSize, std::int64_t> missing = gradients_at_once(blocks, sites);
  for (const Allocation& block : blocks) {
    if (block.use == MemoryUse::parameter) --missing[size_of(block)];
  }
  bool found = false;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].use != MemoryUse::unknown || !spans_history(i)) continue;
    // A program with only forward passes also makes their inputs before them.
    if (is_forward_only ? !existed_before(i) : missing[size_of(blocks[i])]-- <= 0) continue;
    blocks[i].use = MemoryUse::parameter;
    found = true;
  }
  return found;
}

}  // namespace foretrace::infer_detail
