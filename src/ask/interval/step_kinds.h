#pragma once

// Recorded steps that differ so much that they are of several kinds: a step that evaluates or
// allocates says nothing about how much the other steps vary.
//
//     20 20 | 50          steps 0 and 1 are alike, step 2 is of another kind

#include <cstddef>
#include <optional>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct StepKinds {
  /// Indices into StepTimes::each, by kind; the kinds and the steps of each in order of their
  /// times.
  std::vector<std::vector<std::size_t>> kinds;
  /// The kind that the step time belongs to; empty if it lies between two kinds.
  std::optional<std::size_t> typical;

  /// The steps of the other kinds in ascending order; empty if no kind is typical.
  std::vector<std::size_t> unlike() const;
};

/// Splits the steps that count where one takes more than kWideSpread longer than the next faster
/// one. No kinds if they are all alike, if they alternate (these count by whole periods), or if
/// there are so many kinds that the times are one wide distribution.
StepKinds kinds_of_steps(const StepTimes& measured);

/// The recorded and the predicted step of each kind; empty if there is only one kind or if the
/// scenario changes the number of steps.
std::vector<StepsAlike> steps_by_kind(const StepTimes& measured, const StepTimes& predicted);

}  // namespace foretrace
