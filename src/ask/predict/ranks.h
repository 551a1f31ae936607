#pragma once

// The part of an answer about the ranks of a job.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ask/job/job.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/scenario.h"

namespace foretrace {

/// Whether ranks wait for each other's change.
TrustReason ranks_joined(const Job& job);
/// Nothing if all ranks of the job were recorded, or only one.
std::optional<TrustReason> ranks_missing(const Job& job);

/// Raises the upper end of the interval for ranks that were not recorded: the last of many comes
/// later than the last of few. Changes nothing if all were.
void widen_for_missing_ranks(const Job& job, Prediction& prediction);
/// The same for ranks that a scenario adds to one that was recorded alone.
void widen_for_added_ranks(const Scenario& scenario, Prediction& prediction);

/// One rank of the world, as a prediction of it tells; it is like no other yet.
PredictedRank rank_described(const Job& job, std::size_t rank, const Prediction& prediction);

/// Fills in what steps did to another rank, if they left the rank shown as it was, or nearly:
/// "rank 2: 3 pauses".
void tell_steps_of(std::int32_t rank, const std::vector<AppliedStep>& its_steps,
                   Prediction& prediction);

/// Takes back that a step changed nothing, where it changed another rank.
void drop_notes_on_effects(Prediction& prediction);

/// "rank 5 of 64, and 31 like it": the one that is shown, of `all`.
std::string rank_text(const Prediction& prediction, std::size_t all);

}  // namespace foretrace
