#pragma once

#include <span>
#include <vector>

#include "foretrace/step_marks.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The most work of a stream that fits between the second mark and the last, of three or more.
Nanoseconds room_between(Nanoseconds second, Nanoseconds last);

/// Distances of marks (two or more) and what is typical of them.
StepTimes times_between(std::span<const Nanoseconds> marks);

}  // namespace foretrace
