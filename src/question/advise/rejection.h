#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "question/advise/advised_job.h"

namespace foretrace {

/// Shortest possible step: the step time without the work of some groups.
struct Ceiling {
  Nanoseconds step_time{0};
  std::string titles;  ///< "launching and kernels"
};

/// Keyed by the names of the groups.
using Ceilings = std::map<std::vector<std::string_view>, Ceiling>;

/// Computes the ceilings for all suggestions for time that gain more than noise: one replay for
/// each set of groups they act on, on all cores.
Ceilings ceilings_of(const AdvisedJob& job, const std::vector<Suggestion>& suggestions);

/// The reason not to recommend a suggestion, whatever its gain; empty if there is none:
///
///   - it does not apply to the job (Transform::applies())
///   - it, or the recording, is not reliable (trust.h)
///   - it would gain more than removing the work it acts on: its own upper bound
std::string rejection_reason(const AdvisedJob& job, const Ceilings& ceilings,
                             const Suggestion& suggestion);

}  // namespace foretrace
