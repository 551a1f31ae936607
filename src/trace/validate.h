#pragma once

#include "foretrace/trace.h"

namespace foretrace {

/// Throws TraceError if a record refers to something that is not there or has an impossible value.
/// Linear.
void validate(const Trace& trace);

}  // namespace foretrace
