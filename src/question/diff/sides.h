#pragma once

// Describes each side of a comparison, and chooses the steps to compare: steps typical of both.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "foretrace/answer/diff.h"
#include "foretrace/question/diff.h"
#include "job/job.h"
#include "timeline/step_marks.h"

namespace foretrace {

/// The side for a rank as it was recorded. REQUIRES: the rank keeps its trace and outlives the
/// result.
DiffSide side_of(const Rank& rank);

/// The steps of one side.
struct SideSteps {
  std::vector<StepMark> marks;
  StepTimes times;
  std::vector<std::size_t> tasks;  ///< Number of tasks in the step of each mark.
};
SideSteps side_steps(const DiffSide& side);

/// The steps to compare, `count` in a row on each side: the index of the first among the marks, and
/// its step number.
struct ComparedSteps {
  std::size_t before = 0, after = 0, count = 1;
  std::int32_t step_before = -1, step_after = -1;  ///< -1: all tasks are compared.
};

/// Chooses the steps that have most in common: similar in their number of tasks, near the step time
/// of their side, and at the same place in their recording as far as possible. If steps alternate,
/// a whole period is compared; if both sides have the same few, unlike steps, all are.
ComparedSteps compared_steps(const SideSteps& before, const SideSteps& after);

/// A range of steps of one side: `count` marks from `mark` on. `step` is the number of the first
/// one; -1 means all tasks.
struct SideWindow {
  std::size_t mark = 0, count = 1;
  std::int32_t step = -1;
};

/// The records of both sides in the compared steps, by name: in the host ranges with the steps'
/// names, or in the whole recordings if either side has no such ranges.
std::vector<NameChange> name_changes(const DiffSide& before, const SideWindow& window_before,
                                     const DiffSide& after, const SideWindow& window_after);

/// Describes one side of the comparison.
DiffSideReport side_report(const DiffSide& side, const SideSteps& steps, const SideWindow& window);

/// Adds the warnings of one side, prefixed with the name `side`.
void add_warnings_of(const Notes& notes, std::string_view side, Notes& to);

/// Changes of memory in use at the peaks of the fullest devices, by the op that allocated it; the
/// greatest come first.
std::vector<PeakChange> peak_changes(const DiffSide& before, const DiffSide& after);

}  // namespace foretrace
