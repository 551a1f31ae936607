#pragma once

#include <cstdint>

#include "ask/job/job.h"
#include "foretrace/answer/check.h"

namespace foretrace {

/// Where the rank that is judged waits longer in its collectives than in the baseline because
/// another rank comes late, that rank is the cause, and not the collectives. `job` keeps waits for
/// other ranks open.
void name_late_rank(const Job& job, std::int32_t judged, CheckReport& report);

}  // namespace foretrace
