#pragma once

// Ranks that were not recorded. A recorded rank stands for each of them, by its place in the
// groups.
//
//     rank           0  1  2  3     ranks 0 and 3 were recorded
//     in {0 1} ...   0  1  0  1     its place, where neighbors form groups
//     in {0 2} ...   0  0  1  1     its place, where every other rank does
//     stands for it  0  3  0  3     the same place among neighbors counts most
//
// Among ranks with the same places, the nearest one stands for another, but preferably none that
// others wait for.
//
// Groups of unrecorded ranks have the same layout as recorded ones. Their collectives are those of
// the recorded ranks that stand for their members, matched in order.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "infer/ranks/match.h"

namespace foretrace::infer_detail {

struct World {
  /// By rank of the world: index of the recorded rank that stands for it. Recorded ranks come
  /// first, in their order; the others follow in order of their numbers.
  std::vector<std::uint32_t> stand_ins;
  std::vector<std::int32_t> numbers;  ///< By rank of the world.
  std::vector<Match> matches;         ///< Collectives with at least one unrecorded rank.
  std::set<std::uint32_t> completed;  ///< Recorded groups that `matches` replace, because not all
                                      ///< their members were recorded.
  /// The matches of recorded ranks from which `matches` are made. Their members need not have met.
  std::vector<Match> patterns;
};

/// Builds a job of `size` ranks. Adds the groups of unrecorded ranks to `groups`. Throws Error if
/// the size does not fit the recorded ranks and their groups.
World world_of(std::vector<RankGroup>& groups, std::span<const Inference* const> ranks,
               std::span<const std::string> labels, std::int32_t size, Notes& notes);

}  // namespace foretrace::infer_detail
