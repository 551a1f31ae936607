#pragma once

// Picks the rank of a job for which a question is answered.
//
//     the slowest     determines how long the job takes, because the others wait for it
//     the fullest     determines whether the job fits into memory
//     the straggler   holds up the collectives of all others: the rank to look into

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/error.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"
#include "job/job.h"

namespace foretrace {

/// Remembers the rank with the greatest measure among those considered; the first of equal ones.
template <class Measure>
class RankWithMost {
 public:
  /// Returns whether `rank` has more than all before it.
  bool consider(std::size_t rank, const Measure& measure) {
    if (rank_ && !(measure > most_)) return false;
    rank_ = rank;
    most_ = measure;
    return true;
  }
  /// REQUIRES: a rank was considered.
  std::size_t rank() const { return CHECK(rank_.has_value()), *rank_; }
  /// REQUIRES: a rank was considered.
  const Measure& most() const { return CHECK(rank_.has_value()), most_; }

 private:
  std::optional<std::size_t> rank_;
  Measure most_{};
};

/// The rank with the longest step.
using SlowestRank = RankWithMost<Nanoseconds>;

/// Memory that a rank needs of a device. A refused request counts as more than any device has.
struct MemoryNeed {
  bool is_refused = false;
  Bytes reserved{}, allocated{};
  friend auto operator<=>(const MemoryNeed&, const MemoryNeed&) = default;
};
MemoryNeed need_of(const std::vector<MemoryPeak>& peaks);

using FullestRank = RankWithMost<MemoryNeed>;

/// The step of a rank, and the step without waits for other ranks.
struct RankTimes {
  std::int32_t rank = 0;
  Nanoseconds step{0}, work{0};
};

/// The rank that the others wait for; times are medians over the other ranks.
struct Straggler {
  std::size_t rank = 0;
  Nanoseconds others_work{0}, others_wait{0};
};
/// Returns nullopt if no rank clearly keeps the others waiting.
std::optional<Straggler> straggler_among(const std::vector<RankTimes>& ranks);

/// The recorded facts about a rank of the world, without its step time; only its number if ranks do
/// not meet.
RankFacts rank_facts(const JobRanks& job, std::size_t rank);

/// Least share of the recording that the others must wait for a rank to be reported. Chosen.
constexpr double kMuchWaiting = 0.02;

/// Notes which rank the others wait for most, if that is long, or why ranks do not meet.
void note_ranks(const JobRanks& job, Notes& notes);

}  // namespace foretrace
