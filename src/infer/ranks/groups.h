#pragma once

// The collectives of all ranks, by group.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace::infer_detail {

/// A collective on the clock of its own rank.
struct Occurrence {
  std::uint64_t key = 0;    ///< Equal for all members of a collective.
  std::uint64_t step = 0;   ///< Hash of the name of its step; 0 if it has none.
  std::int64_t finish = 0;  ///< In ns on the clock of the recording.
  std::int64_t sequence = -1;
  std::uint32_t number = 0;  ///< Index into Graph::collectives() of the rank.
};

/// The collectives of one rank in one group, in order of their starts.
struct GroupLine {
  std::uint32_t rank = 0;  ///< Index into the ranks of the job.
  std::vector<Occurrence> all;
};

struct RankGroup {
  std::string name;  ///< In words: "ranks 0, 1".
  std::int64_t size = 0;
  std::vector<std::int32_t> members;  ///< Sorted numbers of the ranks; empty if not recorded.
  /// Number of the rank that receives the messages; -1 for collectives.
  std::int32_t receiver = -1;
  std::vector<GroupLine> lines;  ///< By rank; ranks without collectives are left out.
};

/// Finds the groups, including those that only one rank recorded. If groups were not recorded, all
/// ranks form one group for each stream, paired by how well their collectives agree. Throws
/// TraceError if members disagree on the size of a group.
std::vector<RankGroup> groups_of(std::span<const Inference* const> ranks,
                                 std::span<const std::string> labels);

/// In words: "ranks 0, 1".
std::string words_for(const std::vector<std::int32_t>& members);

/// In words: "allreduce of 6144 float".
std::string described(const Inference& rank, const Occurrence& occurrence);

/// Returns, for each occurrence of `line`, its position in the sequence of the group, where
/// the occurrences of `reference` have positions 0, 1, 2 ...; kNoPosition for those that fit
/// nowhere. Returns nothing if the two lines do not agree; then `differs` is the first position in
/// `line` that differs.
inline constexpr std::int64_t kNoPosition = INT64_MIN;
std::vector<std::int64_t> positions_in(const GroupLine& line, const GroupLine& reference,
                                       std::size_t& differs);

}  // namespace foretrace::infer_detail
