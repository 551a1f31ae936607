#pragma once

#include "foretrace/trace.h"

namespace foretrace {

/// Throws TraceError if a record has an impossible value or refers to something that does not
/// exist. Takes linear time.
void validate(const Trace& trace);

}  // namespace foretrace
