#pragma once

// The part of an answer about the ranks of a job.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/scenario.h"
#include "job/job.h"

namespace foretrace {

/// Number of ranks of the whole job, recorded or not.
std::int32_t whole_size(const JobRanks& job);

/// How far the answer considers that ranks wait for each other.
TrustReason ranks_joined(const JobRanks& job);
/// Returns nullopt if all ranks of the job were recorded, or only one.
std::optional<TrustReason> ranks_missing(const JobRanks& job);

/// Raises the upper end of the interval for ranks that were not recorded: the last of many ranks
/// comes later than the last of few. Changes nothing if all were recorded.
void widen_for_missing_ranks(const JobRanks& job, Prediction& prediction);
/// Widens the interval for ranks that a scenario adds to one that was recorded alone.
void widen_for_added_ranks(const Scenario& scenario, Prediction& prediction);

/// Describes a rank of the world from its prediction. The number of ranks like it is not filled in
/// yet.
PredictedRank rank_described(const JobRanks& job, std::size_t rank, const Prediction& prediction);

/// Reports the effect of steps on another rank, if they changed the rank that is shown little or
/// not at all: "rank 2: 3 pauses".
void report_steps_of(std::int32_t rank, const std::vector<AppliedStep>& its_steps,
                     Prediction& prediction);

/// Drops the note that a step changed nothing if it changed another rank.
void drop_notes_on_effects(Prediction& prediction);

/// Describes the rank that is shown, of `all`: "rank 5 of 64, and 31 like it".
std::string rank_text(const Prediction& prediction, std::size_t all);

}  // namespace foretrace
