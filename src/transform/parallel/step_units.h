#pragma once

// The device work of each step's two passes, cut into units: layers of the model, blocks of layers,
// or what a sharded job gathers at once.
//
//     stream   |FFFFFFFF|BBBBBBBBBBBB|U        three units: |0 |1 |2 | and backward |2  |1  |0  |

#include <cstdint>
#include <map>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The tasks of a unit in one pass, in order of time; none where `tasks` is empty.
struct UnitWork {
  std::vector<TaskId> tasks;
  TaskId last = kNoTask;  ///< The one that ends last.
  TaskId first() const { return tasks.empty() ? kNoTask : tasks.front(); }
};

/// The device work of one step, by unit.
struct StepUnits {
  std::vector<UnitWork> forward, backward;
  TaskId last_update = kNoTask;
};

struct UnitsOfSteps {
  std::map<std::int32_t, StepUnits> steps;
  std::map<TaskId, std::size_t> unit;  ///< Of each task of a pass.
};

/// As many units as given, of equal time in each pass; 0: the recorded layers, or 24 units where
/// the trace tells none.
UnitsOfSteps units_of_steps(const Graph& graph, const Timeline& timeline, std::size_t units);

}  // namespace foretrace
