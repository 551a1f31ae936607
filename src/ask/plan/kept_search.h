#pragma once

#include <atomic>
#include <optional>

#include "ask/plan/kept_plan.h"
#include "plan/plan.h"

namespace foretrace {

/// Like plan_layouts(), but keeps its bounds in a file; see plan_keeping().
std::optional<PlanOutcome> kept_outcome(const PlanQuestion& question, const PlanSpace& space,
                                        const StepCalibration& calibration,
                                        const PlanKeeping& keeping, const PlanEvents& events,
                                        const std::atomic<bool>& stop);

}  // namespace foretrace
