#pragma once

// Ranks that were not recorded: a recorded one stands for each, by its place in the groups.
//
//     rank           0  1  2  3     ranks 0 and 3 were recorded
//     in {0 1} ...   0  1  0  1     its place, where neighbors form groups
//     in {0 2} ...   0  0  1  1     its place, where every other rank does
//     is like        0  3  0  3     the same place among neighbors counts most
//
// The nearest of ranks with the same places stands for another, but none that others wait for.
//
// Groups of other ranks lie as the recorded ones do. Their collectives are those of the recorded
// ranks that stand for their members, one after the other.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "infer/ranks/match.h"

namespace foretrace::infer_detail {

struct World {
  /// By rank of the world, into the recorded ranks. These come first, in their order; the others
  /// follow in order of their numbers.
  std::vector<std::uint32_t> like;
  std::vector<std::int32_t> numbers;  ///< By rank of the world.
  std::vector<Match> matches;         ///< With at least one rank that was not recorded.
  std::set<std::uint32_t>
      completed;  ///< Groups that these replace, as not all members were recorded.
  /// The matches of recorded ranks that these are made from. Their members need not have met.
  std::vector<Match> patterns;
};

/// A job of `size` ranks. Groups of ranks that were not recorded are added to `groups`. Throws
/// Error where the size does not fit the recorded ranks and their groups.
World world_of(std::vector<RankGroup>& groups, std::span<const Inference* const> ranks,
               std::span<const std::string> labels, std::int32_t size, Notes& notes);

}  // namespace foretrace::infer_detail
