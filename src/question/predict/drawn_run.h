#pragma once

// The part of a run that a page draws: its lanes in an order that suits readers, its steps, and as
// many of its tasks as fit. The tasks of one step in the middle come first, then the longest of all
// others, so that every zoom level shows tasks and that one step is complete.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction_page.h"

namespace foretrace {

/// A step, from the first start of its tasks to the last finish. Steps may overlap, because the
/// host may work on a step while the device still works on the one before.
struct StepExtent {
  std::string name;
  Nanoseconds from{0}, to{0};
  bool has_tasks = false;
};

struct DrawnLane {
  LaneId id = kNoLane;
  std::size_t tasks = 0;
  Nanoseconds busy{0};
  std::vector<TaskId> all;    ///< In order of their starts; no markers.
  std::vector<TaskId> shown;  ///< The tasks of `all` that fit on the page.
};

struct Drawing {
  std::vector<StepExtent> steps;  ///< In the order of the graph.
  std::size_t step = 0;           ///< The step that is shown whole; steps.size(): none.
  std::vector<DrawnLane> lanes;   ///< The host first, then devices.
  std::size_t tasks = 0, tasks_shown = 0;
  std::size_t lanes_left_out = 0;  ///< If there are very many, those with the least work.
  std::vector<TaskId> path;        ///< The critical path.
};

/// Chooses what to draw: at most `most` tasks.
Drawing drawing_of(const DrawnRun& run, std::size_t most);

/// Returns how long the lane was free before the task started.
Nanoseconds lane_idle_before(const DrawnRun& run, TaskId task);

/// The number of classes that have a color: all but `none`.
constexpr std::size_t kTaskClasses = static_cast<std::size_t>(TaskClass::unknown);
TaskClass drawn_class(TaskKind kind);
std::string_view to_string(TaskClass task_class);

}  // namespace foretrace
