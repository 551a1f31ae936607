#pragma once

// The error message of a search that has no layout left.

#include <vector>

#include "plan/layouts/candidates.h"
#include "plan/layouts/ranking.h"

namespace foretrace {

/// Throws Error with the constraint that excluded the last layouts. `bounds` are by candidate.
[[noreturn]] void refuse_space(const PlanSpace& space, const std::vector<Candidate>& candidates,
                               const std::vector<Bound>& bounds,
                               const StepCalibration& calibration);

}  // namespace foretrace
