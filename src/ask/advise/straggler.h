#pragma once

// Finds the rank of a job that is worth looking into: the straggler, for which the collectives of
// all others wait.
//
//     rank 0   work |~~~ waits in a collective ~~~|      its own time is short, its step is not
//     rank 1   work ....................... work  |T|    the straggler: its own time is its step

#include <string>

#include "ask/job/job.h"

namespace foretrace {

struct RankChoice {
  std::size_t rank = 0;   ///< Into the ranks of the job.
  std::string straggler;  ///< Says why the others wait for it; empty if none does.
};

/// Without a straggler the rank with the longest step. Adds a note of all step times.
RankChoice rank_to_advise(const Job& job, Notes& notes);

}  // namespace foretrace
