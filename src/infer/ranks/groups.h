#pragma once

// The collectives of all ranks by the group that they belong to.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace::infer_detail {

/// A collective on the clock of its own rank.
struct Occurrence {
  std::uint64_t key = 0;    ///< The same for all members of a meeting.
  std::uint64_t step = 0;   ///< Hash of the name of its step; 0: none.
  std::int64_t finish = 0;  ///< ns on the clock of the recording.
  std::int64_t sequence = -1;
  std::uint32_t number = 0;  ///< Into Inference::collectives.
};

/// The collectives of one rank in one group, in order of their starts.
struct GroupLine {
  std::uint32_t rank = 0;  ///< Into the ranks of the job.
  std::vector<Occurrence> all;
};

struct RankGroup {
  std::string name;  ///< In words: "ranks 0, 1".
  std::int64_t size = 0;
  std::vector<std::int32_t> members;  ///< Numbers of ranks, sorted; empty where not recorded.
  std::int32_t receiver = -1;         ///< Number of the rank that messages go to; -1: collectives.
  std::vector<GroupLine> lines;       ///< By rank; those with none are left out.
};

/// Groups that only one of the ranks recorded are among them. Without recorded groups all ranks
/// form one for each stream, paired by how well their collectives agree. Throws TraceError where
/// members disagree on the size of a group.
std::vector<RankGroup> groups_of(std::span<const Inference* const> ranks,
                                 std::span<const std::string> labels);

/// In words: "ranks 0, 1".
std::string words_for(const std::vector<std::int32_t>& members);

/// In words: "allreduce of 6144 float".
std::string described(const Inference& rank, const Occurrence& one);

/// For each occurrence of `line` its place in the sequence of the group, in which `reference` has
/// 0, 1, 2 ...; kUnplaced for those that fit nowhere. Empty if the two do not agree; then `differs`
/// is the first place in `line` that does not.
inline constexpr std::int64_t kUnplaced = INT64_MIN;
std::vector<std::int64_t> places_of(const GroupLine& line, const GroupLine& reference,
                                    std::size_t& differs);

}  // namespace foretrace::infer_detail
