#pragma once

// Ranks that are provably alike are replayed once. Two ranks are alike if their graphs are equal,
// they begin together, and they take part in the same way in collectives with alike ranks:
//
//     collective  0 1 | 2 3 | 4 5   0, 2 and 4 do the same, and so do 1, 3 and 5: two ranks are
//                 A B | A B | A B   replayed, and each stands for three
//
// Starts are the least solution of start = max(finish of what is waited for + lag), and a maximum
// does not change when a number is repeated: only the kinds of ranks in a collective matter, not
// how many there are of each. So ranks that refinement cannot separate have equal times, to the
// nanosecond.

#include <cstdint>
#include <span>
#include <vector>

#include "graph/matched_collective.h"
#include "simulate/joint_replay.h"

namespace foretrace {

/// Returns for each rank the first rank that is alike (itself if there is none before it). Splits
/// classes until no difference between their members is left (colour refinement). Reads each graph
/// once, even if ranks share it; each round takes time linear in the members of the collectives.
std::vector<std::uint32_t> alike_ranks(std::span<const RankGraph> ranks,
                                       const std::vector<MatchedCollective>& collectives);

/// Returns the collectives reduced to the first ranks of the classes; members keep the numbers of
/// these ranks.
std::vector<MatchedCollective> folded_collectives(const std::vector<MatchedCollective>& collectives,
                                                  std::span<const std::uint32_t> first_alike);

}  // namespace foretrace
