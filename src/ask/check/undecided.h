#pragma once

// Recognizes jobs that must not be judged: in a recording that breaks off, missing work cannot be
// distinguished from removed work, and a poor prediction proves nothing.

#include "foretrace/ask/check.h"
#include "foretrace/infer.h"

namespace foretrace {

/// How far the job can be trusted. A recording is judged as it is: an error of its replay, or
/// unexplained time, only matters for a what-if (`is_edited`).
Trust trust_in_job(const Inference& inference, const Notes& notes, bool is_edited);

/// Makes all compared figures undecided, with the reason, if the report's trust does not allow a
/// judgement.
void leave_undecided(const CheckOptions& options, CheckReport& report);

}  // namespace foretrace
