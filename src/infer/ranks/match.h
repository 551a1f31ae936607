#pragma once

// Which collectives of different ranks are one.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "infer/ranks/groups.h"

namespace foretrace::infer_detail {

/// The occurrences of one collective, by rank; at least two.
struct Match {
  std::uint32_t group = 0;  ///< Into the groups.
  std::int64_t sequence = -1;
  Provenance provenance = Provenance::inferred;
  struct Member {
    std::uint32_t rank = 0;
    Occurrence what;
    std::uint32_t stands_for = 0;  ///< Rank of the world; a recorded one stands for itself.
  };
  std::vector<Member> members;
};

/// By sequence numbers where all members recorded them, else by the order of operations. Throws
/// TraceError where neither makes the ranks of a group agree.
std::vector<Match> matches_in(const std::vector<RankGroup>& groups,
                              std::span<const Inference* const> ranks,
                              std::span<const std::string> labels, Notes& notes);

}  // namespace foretrace::infer_detail
