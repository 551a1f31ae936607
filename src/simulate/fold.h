#pragma once

// Ranks that are provably alike are replayed once. Two ranks are alike if their graphs are, they
// begin together, and what they meet in is met by alike ranks in the same way:
//
//     meeting  0 1 | 2 3 | 4 5      0, 2 and 4 do the same, and so do 1, 3 and 5: two ranks are
//              A B | A B | A B      replayed, and each stands for three
//
// Starts are the least solution of start = max(finish of what is waited for + lag), and the
// greatest of equal numbers is that number: how many alike ranks meet does not matter, only which
// kinds do. So ranks that cannot be told apart have equal times, to the nanosecond.

#include <cstdint>
#include <span>
#include <vector>

#include "graph/meeting.h"
#include "simulate/joint_replay.h"

namespace foretrace {

/// For each rank the first one that is alike; itself if it is the first. Splits classes until
/// nothing tells their members apart (colour refinement). Graphs are read once each, ranks may
/// share one; the rest is linear in the members of the meetings for each round.
std::vector<std::uint32_t> alike_ranks(std::span<const JoinedGraph> ranks,
                                       const std::vector<Meeting>& meetings);

/// The meetings of the first ranks of their classes; members are numbers of these.
std::vector<Meeting> folded_meetings(const std::vector<Meeting>& meetings,
                                     std::span<const std::uint32_t> alike);

}  // namespace foretrace
