#pragma once

// The tables of a prediction, for text, Markdown and pages.

#include <cstdint>
#include <string>

#include "document/words/table.h"
#include "foretrace/answer/prediction.h"

namespace foretrace {

/// Returns the step time and its parts, with a column "predicted" only for a what-if.
Table time_table(const Prediction& prediction);
/// Returns the peaks of memory; no rows if the trace has no memory events.
Table memory_table(const Prediction& prediction);
/// Returns the known rates: samples and tokens per second, utilization of the device's arithmetic,
/// exposed communication.
Table rate_table(const Prediction& prediction);
/// Returns the ranks of a job, the slowest first; empty for a single rank.
Table rank_table(const Prediction& prediction);
/// Returns the known rates, such as "MFU 41.2 %, exposed communication 23.3 %"; may be empty.
std::string rates_text(const StepRates& rates, const Breakdown& breakdown, Nanoseconds step);
/// Returns the waits on the critical path and their reasons, the longest first.
Table wait_table(const Prediction& prediction);
/// Returns the work on the critical path, the longest first.
Table work_table(const Prediction& prediction);

/// Returns "device 0", or "host" for a negative number.
std::string device_text(std::int32_t device);

}  // namespace foretrace
