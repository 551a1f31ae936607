#pragma once

// Where blocks are drawn in a picture of time by address: those that live at the same time do not
// overlap. In order of allocation, each takes the best fitting gap, like an allocator without
// segments; blocks that live from the beginning to the end are at the bottom.
//
//     |    cccc   eeee
//     |  bbbb   dddddd          y: offset of the block, x: its life
//     |aaaaaaaaaaaaaaaaaaaa
//
// If there are many blocks, only the largest are drawn; the level of all others is one band.

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
  std::int64_t height = 0;               ///< Above which nothing is placed.
  std::vector<MemoryCurve::Point> rest;  ///< The level of the blocks that have no place.
  std::int64_t rest_blocks = 0;
};

/// n log n in the blocks.
MemoryLayout lay_out(const MemoryReport& report, const Graph& graph, std::size_t most_blocks);

/// At most about twice `most` points: of each of `most` equal stretches the highest and the last,
/// so that no peak is lost.
std::vector<MemoryCurve::Point> thinned(const std::vector<MemoryCurve::Point>& curve,
                                        std::size_t most);

}  // namespace foretrace
