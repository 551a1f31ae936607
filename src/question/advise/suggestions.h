#pragma once

// The result of trying every transform that may help.

#include <string>
#include <vector>

#include "foretrace/question/advise.h"
#include "foretrace/transform.h"
#include "question/advise/advised_job.h"

namespace foretrace {

struct TriedTransforms {
  /// Sorted by time saved, greatest first; then in the order of transforms().
  std::vector<Suggestion> suggestions;
  std::vector<NotTried> not_applicable, no_advice;
};

/// Tries the transforms that the question allows, on all cores. Throws Error if `only` or `skip`
/// names an unknown transform.
TriedTransforms try_transforms(const AdvisedJob& job, const AdviceQuestion& question);

/// Gives the first `most` suggestions recommended for time the intervals that `predict` computes,
/// from replays with the work of other steps, and sorts again; doing so for every try is too slow.
void sharpen_intervals(AdvisedJob& job, std::vector<Suggestion>& suggestions, std::size_t most);

/// The policy of the transform named in `use`, which may have settings. REQUIRES: it exists.
const AdvicePolicy& advice_policy(std::string_view use);

/// The work that two transforms both apply to; empty if they are independent.
std::string_view common_work(std::string_view one, std::string_view other);

}  // namespace foretrace
