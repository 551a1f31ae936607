#pragma once

// The clocks of ranks: a collective ends on all its ranks at the same time, so the differences of
// its recorded ends are those of the clocks.

#include <span>
#include <vector>

#include "infer/ranks/join.h"
#include "infer/ranks/match.h"

namespace foretrace::infer_detail {

/// Ranks are compared along a tree: each with the one that it shares most collectives with. Ranks
/// that share none keep the clock they recorded.
std::vector<RankClock> clocks_of(std::span<const Inference* const> ranks,
                                 const std::vector<Match>& matches);

}  // namespace foretrace::infer_detail
