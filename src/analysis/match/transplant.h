#pragma once

// Puts the work of one run of tasks into another: each task of the one belongs to a task of the
// other on the same lane. Tasks without a partner of their own belong to the nearest earlier one
// that has a partner, so that no work is lost.
//
//     from   a 3   x 1   b 5   c 2
//     into   a 4         b 4   y 9   c 2         a 3+1,  b 5,  y 0,  c 2

#include <map>
#include <utility>
#include <vector>

#include "analysis/match/step_work.h"

namespace foretrace {

/// How much of two runs of tasks corresponds.
struct Match {
  double matched = 0, total = 0;
  bool good() const;
};

struct Transplant {
  std::vector<std::pair<TaskId, Nanoseconds>> durations;  ///< Work of every task of `into`.
  /// Pairs of a task of `into` and a task of `from` that belongs to it; one for every task of
  /// `from` on a lane that both have.
  std::vector<std::pair<TaskId, TaskId>> task_pairs;
  Match tasks, work_into, work_from;
  bool same_launches = true;
  /// Whether nearly all launches of the two correspond, on every lane, and nearly all of their
  /// tasks or work. The number of host tasks alone would not be enough: many take less than the
  /// resolution of a trace, and come and go.
  bool alike() const;
};

/// Transplants lane by lane; work on lanes that `into` does not have is lost.
Transplant transplant(const std::map<LaneKey, StepLine>& into,
                      const std::map<LaneKey, StepLine>& from);

}  // namespace foretrace
