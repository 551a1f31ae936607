#pragma once

// The device work of each step's two passes, cut into units: blocks or layers of the model, or
// what a sharded job gathers at once.
//
//     stream   |FFFFFFFF|BBBBBBBBBBBB|U        three units: |0 |1 |2 | and backward |2  |1  |0  |

#include <cstdint>
#include <map>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The tasks of a unit in one pass, in order of time; empty if the pass has no work for the unit.
struct UnitWork {
  std::vector<TaskId> tasks;
  TaskId last = kNoTask;  ///< The task that ends last.
  TaskId first() const { return tasks.empty() ? kNoTask : tasks.front(); }
};

/// The device work of one step, by unit.
struct StepUnits {
  std::vector<UnitWork> forward, backward;
  TaskId last_update = kNoTask;
};

struct UnitsOfSteps {
  std::map<std::int32_t, StepUnits> steps;
  std::map<TaskId, std::size_t> unit;  ///< The unit of each task of a pass.
};

/// Divides each pass into `units` units of equal time; 0: into the blocks that the trace names
/// or, if no module repeats, its layers, or 24 units if it names none.
UnitsOfSteps units_of_steps(const Graph& graph, const Timeline& timeline, std::size_t units);

}  // namespace foretrace
