#pragma once

// How much more or less memory a changed job may need than was predicted. Replaying an allocator on
// known blocks is exact, so what is in doubt is which blocks a what-if makes of those recorded. By
// the outcomes of memory_ledger.def, as with times (ledger.h):
//
//     scale^2 = sum over kinds of what-if of (2 x pooled^2 + sum of squared errors) / outcomes
//     peak / (1 + t scale)  to  peak (1 + t scale)
//
// with t of Student's distribution for the fewest outcomes of a kind, so that four of five are in
// it. Edits that do what they say, and what leaves the peak alone, have no such doubt. Ignored:
// another allocator, fragmentation of memory that was reserved before the recording.

#include <string_view>

#include "foretrace/answer/prediction.h"

namespace foretrace {

/// Fills in lower_allocated and upper_allocated of the predicted peaks.
void set_memory_interval(Prediction& prediction);

/// How many times a deviation four of five draws of Student's distribution are within.
double student_deviations(int outcomes);

}  // namespace foretrace
