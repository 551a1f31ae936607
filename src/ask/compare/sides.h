#pragma once

// Each side of a comparison by itself, and the steps that are compared: steps typical of both.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ask/job/job.h"
#include "foretrace/answer/diff.h"
#include "foretrace/ask/diff.h"
#include "timeline/step_marks.h"

namespace foretrace {

/// A rank as it was recorded. REQUIRES: it keeps its trace.
DiffSide side_of(const Rank& rank);

/// Where the steps of one side begin.
struct SideSteps {
  std::vector<Mark> marks;
  StepTimes times;
  std::vector<std::size_t> tasks;  ///< In the step of each mark.
};
SideSteps side_steps(const DiffSide& side);

/// The steps that are compared, `count` of each side in a row: the numbers of the first among the
/// marks, and of their markers.
struct ComparedSteps {
  std::size_t before = 0, after = 0, count = 1;
  std::int32_t step_before = -1, step_after = -1;  ///< -1: all tasks are compared.
};

/// The steps that have most in common: similar in their number of tasks, near the step time of
/// their side, and preceded by the same steps as far as the recordings allow. If steps alternate, a
/// whole period is compared, and all steps if both sides have the same few, unlike ones.
ComparedSteps compared_steps(const SideSteps& before, const SideSteps& after);

/// Names steps of one side: `count` marks from `mark` on, the first of which is of `step`; -1 names
/// all tasks.
struct SideWindow {
  std::size_t mark = 0, count = 1;
  std::int32_t step = -1;
};

/// Fills in all but the causes.
DiffSideReport side_report(const DiffSide& side, const SideSteps& steps, const SideWindow& window);

/// Adds the warnings of one side, which `side` names.
void add_warnings_of(const Notes& notes, std::string_view side, Notes& to);

/// Memory in use at the peaks of the fullest devices, by who asked for it: the greatest changes
/// first.
std::vector<PeakChange> peak_changes(const DiffSide& before, const DiffSide& after);

}  // namespace foretrace
