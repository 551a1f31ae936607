#pragma once

#include "foretrace/trace.h"
#include "import/files/source.h"

namespace foretrace {

/// Reads the Chrome trace in `bytes`, which are already decompressed. Throws TraceError if they are
/// not JSON or contain no events.
Trace read_kineto(PeekedSource& bytes);

}  // namespace foretrace
