#pragma once

// A pool planned ahead: places for blocks whose sizes and lifetimes are all known, so that blocks
// that live at the same time do not overlap. Only an allocator that knew the future could do this,
// so it serves as a yardstick for real ones.
//
//     offset |    bbbbb  ee        the largest first; each into the smallest sufficient gap
//            |  ccccc  dddddd      among those placed that live at the same time as it, the lowest
//            |aaaaaaaaaaaaaaaaa    of equal ones; else on top of them
//            +------------------> lifetime
//
// This is colouring of an interval graph, as in SmartPool (J. Zhang et al., "Efficient Memory
// Management for GPU-based Deep Learning Systems", arXiv 1903.06631): sizes descending, best fit in
// address by lifetime. It is optimal for blocks of one size in order of time; in general it is near
// the peak load, which no placement can beat (published: 1.0005 to 1.016 times, VGG and ResNet on
// CIFAR-10, where the pool CnMem takes 1.03 to 1.17 times). Blocks that live the whole time lie at
// the bottom, which costs nothing. Ignored: alignment and streams.

#include <cstdint>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// A block that lives in [made, freed): times or numbers of events. A block with made >= freed
/// takes no room.
struct PoolBlock {
  Bytes bytes{};
  std::int64_t made = 0, freed = 0;
};

struct PoolPlan {
  std::vector<std::int64_t> offsets;  ///< Offset of each block, in the order given.
  Bytes footprint{};                  ///< The top of the highest block.
  Bytes peak_load{};                  ///< See peak_load().
};

/// The greatest total size of blocks that live at the same time.
Bytes peak_load(const std::vector<PoolBlock>& blocks);

/// Takes about n k log n time for n blocks of which k live at the same time.
PoolPlan plan_pool(const std::vector<PoolBlock>& blocks);

}  // namespace foretrace
