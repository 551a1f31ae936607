#pragma once

#include <cstdint>

#include "ask/job/job.h"
#include "foretrace/answer/check.h"

namespace foretrace {

/// If the judged rank waits longer in its collectives than in the baseline because another rank
/// comes late, makes that rank the first cause, in place of the collectives. REQUIRES: `job` keeps
/// waits for other ranks open.
void name_late_rank(const Job& job, std::int32_t checked_rank, CheckReport& report);

}  // namespace foretrace
