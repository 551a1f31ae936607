#pragma once

// Plans which blocks are swapped out between two accesses, and how far that lowers the peak. A copy
// out starts no earlier than the access ends, a copy in ends no later than the next access begins,
// and each direction of the link moves one block at a time:
//
//     block  |access|..............................|access|
//     out           [====]                                      first free slot after the access
//     in                                     [====]             last free slot before the next
//     away               |<----------------->|
//
// A block is moved only if its copy out ends before its copy in begins, so a plan delays no access.

#include <vector>

#include "foretrace/timeline.h"
#include "foretrace/units.h"

namespace foretrace {

struct SwapCandidate {
  Bytes bytes{};
  Nanoseconds begin{0}, end{0};  ///< From the end of an access to the begin of the next one.
};

struct SwapEstimate {
  Bytes bound{};    ///< Highest level if all candidates are away and each has the link to itself.
  Bytes planned{};  ///< Highest level if each direction copies one block at a time.
  std::int64_t moved = 0;
  Bytes moved_bytes{};
};

/// `curve` is the level in order of time. Candidates get the link in the order of their bytes times
/// the area of the level above its mean while they are away, so that large ones come first that are
/// away for long when the level is high. (WDOA of AutoSwap is similar, but takes the whole area
/// under the load.) The plan is feasible, but not necessarily the best one.
SwapEstimate plan_swaps(const std::vector<MemoryCurve::Point>& curve, Nanoseconds end,
                        const std::vector<SwapCandidate>& candidates, Bandwidth out, Bandwidth in);

}  // namespace foretrace
