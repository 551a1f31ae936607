#pragma once

// Plans for a recorded job: each layout is a what-if of data_parallel, pipeline or zero on the
// recorded graph, replayed as `predict` does.
//
//     trace --layers--> |1 .. 12 | 13 .. 24|   x   copies   x   schedule   x   recomputation
//
// A trace does not show how its layers could be divided, so tp, cp and ep stay 1, and a micro-batch
// is the recorded batch.

#include "foretrace/question/plan.h"

namespace foretrace {

/// Whether a path is that of a trace, not of a model's description.
bool names_trace(const std::string& path);

/// Plans for the trace that the question names. Throws Error if the question cannot be answered, or
/// no layout fits.
PlanReport plan_recorded(const PlanQuestion& question);

/// Gives a role to the row of the same layout in the ranking; adds the row if there is none without
/// a role.
void add_with_role(PlanRow row, const std::string& role, std::vector<PlanRow>& ranked);

}  // namespace foretrace
