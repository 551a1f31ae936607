#pragma once

// Applying a transform safely: these functions say which ranks it is meant for, and keep the
// invariants that hold for every transform.

#include <cstdint>
#include <set>

#include "foretrace/transform.h"

namespace foretrace {

/// Returns the ranks that the settings of `transform`, including its selectors, name; most
/// transforms name none. Does not change `transform`.
std::set<std::int32_t> ranks_named(Transform& transform);

/// Applies `transform` so that the work of each step is conserved. On a shared or priority lane,
/// which has no order of its own, a task that waits for nothing would run when the recording begins
/// and be missing from the step it belongs to. So every task on such a lane that the transform left
/// without a wait gets a dependency on the task in front of it: one that it added, one whose last
/// wait it removed, and one that waited only because its lane was FIFO before. Notes say which host
/// tasks a selector left out because device tasks match its name too. Throws what apply() throws.
/// Does not change `transform`. Linear, apart from apply().
Effect apply_checked(Transform& transform, Graph& graph, const Context& context);

}  // namespace foretrace
