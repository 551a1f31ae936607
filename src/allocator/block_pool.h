#pragma once

// A pool planned ahead: where blocks stand whose sizes and lifetimes are all known, so that those
// that live at the same time do not overlap. It is what an allocator could do that knew the future,
// and so a yardstick for one that does not.
//
//     offset |    bbbbb  ee        the largest first; each into the smallest gap that holds it
//            |  ccccc  dddddd      among those placed that live at the same time as it, the lowest
//            |aaaaaaaaaaaaaaaaa    of equal ones; else on top of them
//            +------------------> lifetime
//
// Colouring of an interval graph, as SmartPool in J. Zhang et al., "Efficient Memory Management for
// GPU-based Deep Learning Systems" (arXiv 1903.06631): sizes descending, best fit in address by
// lifetime. For blocks of one size it is optimal where they come in order of time; in general it is
// near the peak load, which no placement can beat (published: 1.0005 to 1.016 times, VGG and ResNet
// on CIFAR-10, where the pool CnMem takes 1.03 to 1.17 times). What lives as long as anything
// does stands at the bottom, which costs nothing. Ignored: alignment and streams.

#include <cstdint>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// Lives in [made, freed): times or numbers of events. One with made >= freed takes no room.
struct PoolBlock {
  Bytes bytes{};
  std::int64_t made = 0, freed = 0;
};

struct PoolPlan {
  std::vector<std::int64_t> offsets;  ///< Of each block, in the order given.
  Bytes footprint{};                  ///< Above which nothing stands.
  Bytes peak_load{};                  ///< See peak_load().
};

/// The greatest sum of blocks that live at the same time.
Bytes peak_load(const std::vector<PoolBlock>& blocks);

/// For n blocks of which k live at the same time about n k log n.
PoolPlan plan_pool(const std::vector<PoolBlock>& blocks);

}  // namespace foretrace
