#pragma once

// The task that a step begins with: step_times() measures between them.

#include <cstdint>
#include <vector>

#include "foretrace/timeline.h"

namespace foretrace {

/// Where a step begins: the start of the first device task launched in it. If nothing in a step has
/// a launch, the device task that starts first; if most steps have no device work, the first host
/// task. Marks that leave a stream less time than it has work belong to a stream that runs ahead;
/// then only the tasks of the stream with the most work count.
struct Mark {
  std::int32_t step;
  TaskId task;
  Nanoseconds time;
};

/// In order of steps. Steps without tasks have none, nor have steps without device work if most
/// steps have some.
std::vector<Mark> step_marks(const Graph& graph, const Timeline& timeline);

/// The tasks whose first start and last finish bound the only step of a graph: the device tasks of
/// a step and those of the threads that launch them, or its host tasks if one of these marks it.
/// Linear.
std::vector<TaskId> tasks_of_step(const Graph& graph, const Mark& mark);

/// Steps from `first` up to, but not including, `end`.
struct MarkedSteps {
  std::int32_t first, end;
  bool has(const Task& task) const { return task.step >= first && task.step < end; }
};

/// The steps between the second mark and the last, in which no lane can have more work than
/// room_between() the two. REQUIRES: at least three marks.
MarkedSteps steps_between(const std::vector<Mark>& marks);

/// The most work of a lane that fits between two marks, with 5 % to spare.
Nanoseconds room_between(Nanoseconds from, Nanoseconds to);

/// The work of a lane's tasks in some steps. Linear in the tasks of the lane.
Nanoseconds work_in(const Graph& graph, LaneId lane, const MarkedSteps& steps);

/// How many of this many marks come before the first step that counts.
std::size_t first_counted_mark(const Graph& graph, std::size_t marks);

/// The steps that the step time is taken from, in order: whole periods (see StepTimes). Empty for a
/// graph without steps. Linear.
std::vector<std::int32_t> counted_steps(const Graph& graph);

}  // namespace foretrace
