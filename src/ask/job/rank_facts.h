#pragma once

#include <cstddef>
#include <vector>

#include "ask/job/job.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/notes.h"

namespace foretrace {

/// The recorded facts about a rank of the world, without its step time; only its number if ranks do
/// not meet.
RankFacts rank_facts(const JobRanks& job, std::size_t rank);

/// Least share of the recording that the others must wait for a rank to be reported. Chosen.
constexpr double kMuchWaiting = 0.02;

/// Notes which rank the others wait for most, if that is long, or why ranks do not meet.
void note_ranks(const JobRanks& job, Notes& notes);

}  // namespace foretrace
