#pragma once

// Changes the size of memory blocks, and finds the peak memory of the devices.

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// More than the memory of any device, yet small enough for the sum of all blocks of a run to fit
/// 64 bits.
constexpr Bytes kLargestBlock{std::int64_t{1} << 44};

/// Returns `block` with its size multiplied by `factor`. A size that is a multiple of 512 bytes, as
/// PyTorch's caching allocator makes it, is rounded up to one again. Throws Error naming `setting`
/// if the size exceeds kLargestBlock.
Allocation resized(const Allocation& block, double factor, std::string_view setting);

/// Returns the size that the program requested, or the size of the block if the request is unknown.
/// Equal requests may get blocks of different sizes.
inline std::int64_t asked_bytes(const Allocation& block) {
  return block.requested > Bytes{} ? block.requested.count : block.bytes.count;
}

/// Replaces allocation `number` by `block`. If the allocation existed before the recording, the
/// initial memory of its device changes by the same amount.
void replace_block(Graph& graph, std::uint32_t number, const Allocation& block);

/// Adds a block of `bytes` to each device that has blocks, held for the whole run. Does nothing if
/// the graph has no allocations.
void add_permanent_block(Graph& graph, Bytes bytes, MemoryUse use);

/// Return the greatest peak of all devices, in `timeline` or in a replay of the graph.
Bytes peak_memory(const Graph& graph, const Timeline& timeline);
Bytes peak_memory(const Graph& graph);

}  // namespace foretrace
