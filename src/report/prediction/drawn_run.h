#pragma once

// The part of a run that a page draws: its lanes in the order in which readers look for them, its
// steps, and as many of its tasks as fit. Those of one step in the middle come first, then the
// longest of all others: at every zoom there is something to see, and in that one step everything.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction_page.h"

namespace foretrace {

/// From the first start of its tasks to the last finish; the host of one step may work while the
/// device is at the one before.
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
  std::vector<StepExtent> steps;  ///< As in the graph.
  std::size_t step = 0;           ///< The one that is shown whole; steps.size(): none.
  std::vector<DrawnLane> lanes;   ///< The host first, then devices.
  std::size_t tasks = 0, tasks_shown = 0;
  std::size_t lanes_left_out = 0;  ///< With little to do, where there are very many.
  std::vector<TaskId> path;        ///< The critical path.
};

/// With at most `most` tasks.
Drawing drawing_of(const DrawnRun& run, std::size_t most);

/// How long a task waited beyond its place on the lane, as far as the replay knows.
Nanoseconds waited_in(const DrawnRun& run, TaskId task);

/// The classes that have a color, all but `none`.
constexpr std::size_t kTaskClasses = static_cast<std::size_t>(TaskClass::none);
TaskClass drawn_class(TaskKind kind);
std::string_view to_string(TaskClass task_class);

}  // namespace foretrace
