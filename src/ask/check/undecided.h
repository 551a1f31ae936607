#pragma once

// Jobs that are not judged: in a recording that breaks off, missing work cannot be distinguished
// from removed work, and a poor prediction proves nothing.

#include "foretrace/ask/check.h"
#include "foretrace/infer.h"

namespace foretrace {

/// The facts about its recording. A recording is judged as it is: an error of its replay, or open
/// time, only matters for a what-if (`is_edited`).
Trust trust_in_job(const Inference& inference, const Notes& notes, bool is_edited);

/// By the report's trust, with the reason for each figure that was compared.
void leave_undecided(const CheckOptions& options, CheckReport& report);

}  // namespace foretrace
