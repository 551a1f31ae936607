#pragma once

// The tables of a prediction, for text and markdown.

#include "foretrace/answer/prediction.h"
#include "report/words/table.h"

namespace foretrace {

/// Step time and where it goes; then the peaks of memory. "predicted" only with a what-if.
Table time_table(const Prediction& prediction);
/// Empty rows where the trace has no memory events.
Table memory_table(const Prediction& prediction);
/// Samples and tokens per second, utilization of the device's arithmetic, exposed communication:
/// those that are known.
Table rate_table(const Prediction& prediction);
/// The ranks of a job, the slowest first; empty for a single one.
Table rank_table(const Prediction& prediction);
/// "MFU 41.2 %, exposed communication 23.3 %": those that are known; may be empty.
std::string rates_text(const StepRates& rates, const Breakdown& breakdown, Nanoseconds step);
/// Lists what tasks on the critical path waited for, longest first.
Table wait_table(const Prediction& prediction);
/// The work on the critical path, longest first.
Table work_table(const Prediction& prediction);

}  // namespace foretrace
