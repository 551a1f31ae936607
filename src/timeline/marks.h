#pragma once

#include <span>

#include "foretrace/timeline.h"
#include "timeline/step_marks.h"

namespace foretrace {

/// With so few steps the last one counts, too.
inline bool last_counts(std::size_t marks) { return marks <= 4; }

/// If most steps have device work, steps without it do not count.
inline bool marked_by_device(std::size_t with_device, std::size_t with_tasks) {
  return with_device > 0 && 2 * with_device >= with_tasks;
}

/// Returns how many of the first distances do not count.
std::size_t first_counted(const StepRule& rule, std::size_t distances);

/// The step times of a graph without steps.
StepTimes times_without_steps(const StepRule& rule, Nanoseconds length);

/// Distances of marks and their summary. `last`: of the last step, if it counts. REQUIRES: a mark.
StepTimes times_between(const StepRule& rule, std::span<const Nanoseconds> marks, Nanoseconds last);

}  // namespace foretrace
