#pragma once

// Every transform that is worth trying, tried.

#include <string>
#include <vector>

#include "ask/advise/advised_job.h"
#include "foretrace/ask/advise.h"
#include "foretrace/transform.h"

namespace foretrace {

struct Suggestions {
  std::vector<Suggestion>
      made;  ///< Sorted by time saved, greatest first; then in the order of transforms().
  std::vector<NotTried> not_applicable, no_advice;
};

/// Throws Error for a name that no transform has.
Suggestions suggestions_for(const AdvisedJob& job, const AdviceQuestion& question);

/// Gives the first `most` suggestions recommended for time the intervals of `predict`, by replays
/// with the work of other steps; that is too slow for everything that was tried.
void sharpen_intervals(AdvisedJob& job, std::vector<Suggestion>& made, std::size_t most);

/// For a transform with settings.
const Worth& worth_of(std::string_view use);

/// The work that two transforms both apply to; empty if they are independent.
std::string_view common_hold(std::string_view one, std::string_view other);

}  // namespace foretrace
