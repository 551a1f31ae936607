#pragma once

// Whether two summaries can be of one job. A job that was changed keeps something: its kernels when
// its host code changes, its ops when it is compiled or runs in another precision, or the bytes it
// loads. Another job has hardly any of them in common.

#include "foretrace/question/check.h"

namespace foretrace {

/// How much two summaries have in common, from 0 to 1: the greatest of several shares.
double likeness(const JobSummary& before, const JobSummary& now);

/// Throws Error if the two have next to nothing in common.
void refuse_other_job(const JobSummary& before, const JobSummary& now);

/// Throws Error if they cannot be two recordings of one unchanged job.
void refuse_changed_job(const JobSummary& before, const JobSummary& now);

}  // namespace foretrace
