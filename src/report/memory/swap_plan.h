#pragma once

// Which blocks can be elsewhere between two accesses, and how far that lowers the peak. A copy out
// starts no earlier than the access ends, a copy in ends no later than the next begins, and each
// direction of the link moves one block at a time:
//
//     block  |access|..............................|access|
//     out           [====]                                      first free slot after the access
//     in                                     [====]             last free slot before the next
//     away               |<----------------->|
//
// A block is moved only if the first ends before the second begins, so a plan delays no access.

#include <vector>

#include "foretrace/timeline.h"
#include "foretrace/units.h"

namespace foretrace {

struct SwapCandidate {
  Bytes bytes{};
  Nanoseconds begin{0},
      end{0};  ///< From the end of the access before to the begin of the one after.
};

struct SwapEstimate {
  Bytes bound{};    ///< Highest level with all candidates away, as if each had the link alone.
  Bytes planned{};  ///< Highest level with copies one at a time.
  std::int64_t moved = 0;
  Bytes moved_bytes{};
};

/// `curve` is the level in order of time. Candidates that help where the level is highest, largest
/// and longest, get the link first: by bytes times the area of the level above its mean while they
/// are away (in the spirit of WDOA of AutoSwap, which is the area under the load). The result is a
/// feasible plan, not the best of all.
SwapEstimate plan_swaps(const std::vector<MemoryCurve::Point>& curve, Nanoseconds end,
                        const std::vector<SwapCandidate>& candidates, Bandwidth out, Bandwidth in);

}  // namespace foretrace
