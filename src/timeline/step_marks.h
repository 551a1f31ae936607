#pragma once

// The task with which a step begins; step_times() measures between these.

#include <cstdint>
#include <vector>

#include "foretrace/timeline.h"

namespace foretrace {

/// The beginning of a step: the start of the first device task launched in it. If nothing in the
/// step has a launch, the device task that starts first; if most steps have no device work, the
/// first host task. If the marks leave a stream less time than it has work, they belong to a stream
/// that runs ahead; then only tasks of the stream with the most work count. Times never fall. Few
/// steps begin earlier than `task`: see begin_of_step().
struct StepMark {
  std::int32_t step;
  TaskId task;
  Nanoseconds time;
};

/// Returns the marks in order of steps. Steps without tasks have none; nor do steps without device
/// work if most steps have some.
std::vector<StepMark> step_marks(const Graph& graph, const Timeline& timeline);

/// Returns the tasks whose first start and last finish bound the only step of a graph: the device
/// tasks of the step and the tasks of the threads that launch them, or its host tasks if one of
/// these marks it. Takes linear time.
std::vector<TaskId> tasks_of_step(const Graph& graph, const StepMark& mark);

/// Steps from `first` up to, but not including, `end`.
struct MarkedSteps {
  std::int32_t first, end;
  bool has(const Task& task) const { return task.step >= first && task.step < end; }
};

/// Returns the steps between the second mark and the last, in which no lane can have more work than
/// room_between() the two. REQUIRES: at least three marks.
MarkedSteps steps_between(const std::vector<StepMark>& marks);

/// Returns the most work of a lane that fits between two marks, with 5 % to spare.
Nanoseconds room_between(Nanoseconds from, Nanoseconds to);

/// Returns the work of a lane's tasks in `steps`. Takes linear time in the tasks of the lane.
Nanoseconds work_in(const Graph& graph, LaneId lane, const MarkedSteps& steps);

/// Whether the last step counts too, because there are so few.
inline bool last_counts(std::size_t marks) { return marks <= 4; }

/// Returns how many of `marks` come before the first step that counts.
std::size_t first_counted_mark(const Graph& graph, std::size_t marks);

/// Returns the steps from which the step time is computed, in order: whole periods (see StepTimes).
/// Empty for a graph without steps. Takes linear time.
std::vector<std::int32_t> counted_steps(const Graph& graph);

}  // namespace foretrace
