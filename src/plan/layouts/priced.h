#pragma once

// One layout with its price, and why it is slower than the best.

#include "plan/plan.h"

namespace foretrace {

constexpr double kMicrosecondsOfHour = 3600e6;

inline double cost_of(const PlanSpace& space, double us, std::int64_t devices) {
  return us / kMicrosecondsOfHour * static_cast<double>(devices) * space.gpu_hour;
}

PlannedLayout priced_layout(const PlanSpace& space, const Layout& layout,
                            StepCalibration& calibration);

/// Returns the layout with the reason why it is slower than the best.
PlannedLayout with_loss(PlannedLayout layout, const PlannedLayout& best);

}  // namespace foretrace
