#pragma once

// Finds which work of two summaries corresponds, in this order:
//
//     1. the same name at the same place
//     2. the same name elsewhere: of the same size and op, of the same size, any: work that moved
//     3. another name at the same place: work that was replaced
//     4. other kernels of the same outer or inner op, and host work anywhere
//
// Work that vanished is taken off what came in its place, so that the differences of all places add
// up to the difference of the two. Figures that count work of a kind say how much came in all.

#include <vector>

#include "question/check/job/changes.h"

namespace foretrace {

/// Every group of either side is part of exactly one change. Changes of work that is only in
/// `before` have no `now`.
std::vector<WorkChange> matched_work(const JobSummary& before, const JobSummary& after);

/// Adds all that is summed, and the name unless `sum` has it.
void add_group(JobGroup& sum, const JobGroup& group);

}  // namespace foretrace
