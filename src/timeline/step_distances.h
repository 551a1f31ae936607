#pragma once

#include <span>

#include "foretrace/timeline.h"
#include "timeline/step_marks.h"

namespace foretrace {

/// Whether the last step counts too, because there are so few.
inline bool last_counts(std::size_t marks) { return marks <= 4; }

/// Whether steps are marked by device work: if at least half of them have some, the others do not
/// count.
inline bool marked_by_device(std::size_t with_device, std::size_t with_tasks) {
  return with_device > 0 && 2 * with_device >= with_tasks;
}

/// Returns the number of leading distances that do not count.
std::size_t first_counted(const StepRule& rule, std::size_t distances);

/// Step times of a graph without steps: its length.
StepTimes times_without_steps(const StepRule& rule, Nanoseconds length);

/// Returns the distances between marks and their summary. `last` is the length of the last step, if
/// it counts. REQUIRES: at least one mark.
StepTimes times_between(const StepRule& rule, std::span<const Nanoseconds> marks, Nanoseconds last);

}  // namespace foretrace
