#pragma once

// The clocks of ranks. A collective ends on all its ranks at the same time, so the differences
// between its recorded ends are the differences between the clocks.

#include <span>
#include <vector>

#include "infer/ranks/join.h"
#include "infer/ranks/match.h"

namespace foretrace::infer_detail {

/// Compares ranks along a tree: each with the rank with which it shares most collectives. Ranks
/// that share none keep their recorded clock.
std::vector<RankClock> clocks_of(std::span<const Inference* const> ranks,
                                 const std::vector<Match>& matches);

}  // namespace foretrace::infer_detail
