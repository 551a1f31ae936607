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

#include "ask/job/step_work.h"

namespace foretrace {

/// How much of two runs of tasks corresponds.
struct Match {
  double matched = 0, total = 0;
  bool good() const;
};

struct Transplant {
  std::vector<std::pair<TaskId, Nanoseconds>> durations;  ///< Work of every task of `into`.
  /// For every task of `from` on a lane that both have, in front the task of `into` it belongs to.
  std::vector<std::pair<TaskId, TaskId>> places;
  Match tasks, work_into, work_from;
  bool same_launches = true;
  /// Runs are alike if nearly all of their launches correspond, on every lane, and nearly all of
  /// their tasks or work. The number of host tasks alone would not do: many take less than the
  /// resolution of a trace, and come and go.
  bool alike() const;
};

/// Lines of the two that are of the same lane; work of other lanes has no place to go to.
Transplant transplant(const std::map<LaneKey, StepLine>& into,
                      const std::map<LaneKey, StepLine>& from);

}  // namespace foretrace
