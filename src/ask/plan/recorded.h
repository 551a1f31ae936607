#pragma once

// Plans for a job of which there is a trace: each layout is a what-if of data_parallel, pipeline or
// zero on the recorded graph, replayed as `predict` does.
//
//     trace --layers--> |1 .. 12 | 13 .. 24|   x   copies   x   schedule   x   recomputation
//
// A trace does not say how its layers could be divided, so that tp, cp and ep stay 1, and a
// micro-batch is the recorded batch.

#include "foretrace/ask/plan.h"

namespace foretrace {

/// Whether a path leads to a trace, rather than to the description of a model.
bool names_trace(const std::string& path);

/// Throws Error where a question cannot be answered, or no layout fits.
PlanReport plan_recorded(const PlanQuestion& question);

/// Marks the row of that layout in a ranking; adds it where it is not ranked, or has a role.
void add_with_role(PlanRow row, const std::string& role, std::vector<PlanRow>& ranked);

}  // namespace foretrace
