#pragma once

// Finds the rank of a job that is worth looking into: the straggler, for which the collectives of
// all others wait.
//
//     rank 0   work |~~~ waits in a collective ~~~|      its own time is short, its step is not
//     rank 1   work ....................... work  |T|    the straggler: its own time is its step

#include <string>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace {

struct RankChoice {
  std::size_t rank = 0;   ///< Into the ranks given.
  std::string straggler;  ///< The reason why the others wait for it; empty if there is none.
};

/// Without a straggler the rank with the longest step. Adds a note of all step times.
RankChoice rank_to_advise(const std::vector<Inference>& ranks, const std::vector<Trace>& traces,
                          Notes& notes);

}  // namespace foretrace
