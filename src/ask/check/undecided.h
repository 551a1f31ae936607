#pragma once

// Jobs that are not judged: what is missing of a recording that breaks off cannot be told from what
// the job no longer does, and a poor prediction proves nothing.

#include "foretrace/ask/check.h"
#include "foretrace/infer.h"

namespace foretrace {

/// The facts of its recording. What was recorded is judged as it was: that its replay is off, or
/// what it leaves open, is of no consequence but for a what-if (`is_edited`).
Trust trust_in_job(const Inference& inference, const Notes& notes, bool is_edited);

/// By the report's trust, with the reason for each figure that was compared.
void leave_undecided(const CheckOptions& options, CheckReport& report);

}  // namespace foretrace
