#pragma once

// Finds the rank of a job that is worth examining: the straggler, which the collectives of all
// others wait for.
//
//     rank 0   work |~~~ waits in a collective ~~~|      its own time is short, its step is not
//     rank 1   work ....................... work  |T|    the straggler: its own time is its step

#include <cstdint>
#include <optional>
#include <string>

#include "job/job.h"

namespace foretrace {

struct LateRank {
  std::size_t rank = 0;        ///< Index into the ranks of the job.
  std::int32_t number = 0;     ///< Number of the rank.
  Nanoseconds others_wait{0};  ///< Wait in a step, median over the others.
  /// "it works 1.2 s a step, 1 s of it in one piece of host work, "load"; the others work 220 ms
  /// and wait 990 ms for it"
  std::string text;
};
/// Returns nullopt if no rank clearly keeps the others waiting.
std::optional<LateRank> late_rank(const JobRanks& job);

struct RankChoice {
  std::size_t rank = 0;   ///< Index into the ranks of the job.
  std::string straggler;  ///< Explains why the others wait for it; empty if it is no straggler.
  /// Which rank it is and why, beside the one that predict shows; empty for a single rank.
  std::string reason = {};
};

/// Chooses the straggler, or without one the rank with the longest step. Adds a note with all step
/// times.
RankChoice rank_to_advise(const JobRanks& job, Notes& notes);

}  // namespace foretrace
