#pragma once

// Applying a transform safely: these functions say which ranks it is meant for, and keep the
// invariants that hold for every transform.

#include <cstdint>
#include <set>

#include "foretrace/transform.h"

namespace foretrace {

/// The ranks that its settings and selectors name; most name none. `transform` stays as it is.
std::set<std::int32_t> ranks_named(Transform& transform);

/// Applies it so that work on lanes is conserved. On a shared or priority lane, which has no order
/// of its own, a task that waits for nothing runs when the recording begins and is missing from the
/// step it belongs to. So what the transform put on such a lane, or took the last wait from, and
/// whatever only its place in line made wait when the lane lost its order, waits for the task in
/// front. Notes say which host tasks a selector left out because device work has the name as well.
/// Throws what apply() throws. `transform` stays as it is. Linear, apart from apply().
Effect apply_checked(Transform& transform, Graph& graph, const Context& context);

}  // namespace foretrace
