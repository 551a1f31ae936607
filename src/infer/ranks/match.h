#pragma once

// Finds which collectives of different ranks are the same.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "infer/ranks/groups.h"

namespace foretrace::infer_detail {

/// The occurrences of one collective, by rank; there are at least two.
struct Match {
  std::uint32_t group = 0;  ///< Index into the groups.
  std::int64_t sequence = -1;
  Provenance provenance = Provenance::inferred;
  struct Member {
    std::uint32_t rank = 0;
    Occurrence occurrence;
    std::uint32_t stands_for = 0;  ///< Rank of the whole job; a recorded rank stands for itself.
  };
  std::vector<Member> members;
};

/// Matches by sequence numbers if all members recorded them, otherwise by the order of operations.
/// Throws TraceError if the ranks of a group do not agree.
std::vector<Match> matches_in(const std::vector<RankGroup>& groups,
                              std::span<const Inference* const> ranks,
                              std::span<const std::string> labels, Notes& notes);

}  // namespace foretrace::infer_detail
