#pragma once

#include <atomic>
#include <optional>

#include "ask/plan/resumable_plan.h"
#include "plan/plan.h"

namespace foretrace {

/// Like plan_layouts(), but keeps its bounds in a file; see resumable_plan().
std::optional<PlanOutcome> resumable_search(const PlanQuestion& question, const PlanSpace& space,
                                            const StepCalibration& calibration,
                                            const PlanFileOptions& file_options,
                                            const PlanEvents& events,
                                            const std::atomic<bool>& stop);

}  // namespace foretrace
