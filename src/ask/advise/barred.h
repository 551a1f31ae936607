#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ask/advise/advised_job.h"

namespace foretrace {

/// How short a step gets with some levers pulled to 0.
struct Ceiling {
  Nanoseconds step_time{0};
  std::string titles;  ///< "launching and kernels"
};

/// Ceilings by the names of their levers.
using Ceilings = std::map<std::vector<std::string_view>, Ceiling>;

/// The ceilings of suggestions for time that bring more than noise: a replay for each set of levers
/// that these act on, on all cores.
Ceilings ceilings_of(const AdvisedJob& job, const std::vector<Suggestion>& made);

/// Why a suggestion is none to recommend, however much it would bring; empty if nothing speaks
/// against it:
///
///   - it captures graphs where none would hold (capture.h)
///   - it, or the recording, is not to be relied on (trust.h)
///   - it would bring more than what it acts on would in no time at all: its own ceiling
std::string why_barred(const AdvisedJob& job, const Ceilings& ceilings, const Suggestion& made);

}  // namespace foretrace
