#pragma once

#include <string>

#include "scenario/advise/advised_job.h"

namespace foretrace {

/// Why a suggestion is none to recommend, however much it would bring; empty if nothing speaks
/// against it:
///
///   - it captures graphs where none would hold (capture.h)
///   - it, or the recording, is not to be relied on (trust.h)
///   - it would bring more than what it acts on would in no time at all: its own ceiling
std::string why_barred(const AdvisedJob& job, const Suggestion& made);

}  // namespace foretrace
