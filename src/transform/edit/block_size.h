#pragma once

// Blocks of another size, and what a device then holds.

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// More than any device has; so much that the sum of all blocks of a run still fits 64 bits.
constexpr Bytes kLargestBlock{std::int64_t{1} << 44};

/// `block` with its size times `factor`. What an allocator had rounded to units of 512 bytes, as
/// the caching allocator of PyTorch does, is rounded up to them again. Throws Error naming
/// `setting` if that is more than kLargestBlock.
Allocation resized(const Allocation& block, double factor, std::string_view setting);

/// The size that the program asked for, if known: equal requests may get blocks of other sizes.
inline std::int64_t asked_bytes(const Allocation& block) {
  return block.requested > Bytes{} ? block.requested.count : block.bytes.count;
}

/// Puts `block` in the place of allocation `number`. One that was there before the recording takes
/// the level at which the recording began with it.
void replace_block(Graph& graph, std::uint32_t number, const Allocation& block);

/// Another block of so many bytes on the first device, from the beginning to the end; nothing where
/// the graph has no blocks.
void hold_always(Graph& graph, Bytes bytes, MemoryUse use);

/// The greatest peak of all devices in `timeline`, or in a replay.
Bytes peak_memory(const Graph& graph, const Timeline& timeline);
Bytes peak_memory(const Graph& graph);

}  // namespace foretrace
