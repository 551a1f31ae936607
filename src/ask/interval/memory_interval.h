#pragma once

// How much more or less memory a changed job may need than predicted. Replaying an allocator on
// known blocks is exact, so the uncertainty is in how a what-if changes the recorded blocks. By the
// outcomes of memory_ledger.def, as with times (ledger.h):
//
//     scale^2 = sum over kinds of what-if of (2 x pooled^2 + sum of squared errors) / outcomes
//     peak / (1 + t scale)  to  peak (1 + t scale)
//
// with t of Student's distribution for the fewest outcomes of a kind, so that four of five are in
// it. Edits, and transforms that leave the peak alone, have no such uncertainty. Ignored: another
// allocator, fragmentation of memory that was reserved before the recording.

#include <string_view>

#include "foretrace/answer/prediction.h"

namespace foretrace {

/// Fills in lower_allocated and upper_allocated of the predicted peaks.
void set_memory_interval(Prediction& prediction);

/// How many times a deviation four of five draws of Student's distribution are within.
double student_deviations(int outcomes);

}  // namespace foretrace
