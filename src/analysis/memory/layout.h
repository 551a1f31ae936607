#pragma once

// Places blocks in a picture of addresses over time, so that blocks that live at the same time do
// not overlap. In order of allocation, each block takes the best fitting gap, as in an allocator
// without segments. Blocks that live from the beginning to the end are at the bottom.
//
//     |    cccc   eeee
//     |  bbbb   dddddd          y: offset of the block, x: its life
//     |aaaaaaaaaaaaaaaaaaaa
//
// If there are many blocks, only the largest are drawn; one band shows the level of all others.

#include <vector>

#include "foretrace/answer/memory.h"
#include "foretrace/graph.h"

namespace foretrace {

struct PlacedBlock {
  TimedBlock block;
  std::int64_t offset = 0;
};

struct MemoryLayout {
  std::vector<PlacedBlock> blocks;       ///< The largest first.
  std::int64_t height = 0;               ///< Bytes; all placed blocks end below it.
  std::vector<MemoryCurve::Point> rest;  ///< The level of the blocks that are not placed.
  std::int64_t rest_blocks = 0;
};

/// Takes time n log n for n blocks.
MemoryLayout lay_out(const MemoryReport& report, const Graph& graph, std::size_t most_blocks);

/// Reduces a curve to at most about twice `most` points: the highest and the last point of each of
/// `most` equal intervals, so that no peak is lost.
std::vector<MemoryCurve::Point> thinned(const std::vector<MemoryCurve::Point>& curve,
                                        std::size_t most);

}  // namespace foretrace
