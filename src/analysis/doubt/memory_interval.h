#pragma once

// How much more or less memory a changed job may need than predicted. Replaying an allocator on
// known blocks is exact, so the uncertainty lies in how a what-if changes the recorded blocks. It
// is estimated from the outcomes in memory_ledger.def, as for times (ledger.h):
//
//     scale^2 = sum over kinds of what-if of (2 x pooled^2 + sum of squared errors) / outcomes
//     peak / (1 + t scale)  to  peak (1 + t scale)
//
// where t is from Student's distribution for the fewest outcomes of a kind, so that the range
// contains four of five peaks. Edits, and transforms that leave the peak alone, have no such
// uncertainty. Ignored: another allocator, fragmentation of memory that was reserved before the
// recording.

#include <string_view>

#include "foretrace/answer/prediction.h"

namespace foretrace {

/// Fills in lower_allocated and upper_allocated of the predicted peaks.
void set_memory_interval(Prediction& prediction);

/// Number of outcomes with which the effect of a kind of what-if on memory was compared.
int known_memory_outcomes(std::string_view kind);

/// The number of deviations within which four of five draws of Student's distribution lie.
double student_deviations(int outcomes);

}  // namespace foretrace
