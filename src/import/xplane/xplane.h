#pragma once

#include "foretrace/trace.h"
#include "import/files/source.h"

namespace foretrace {

/// Reads a profile of XLA, which is already decompressed. Throws TraceError if it has no events or
/// is of several hosts.
Trace read_xplane(Source& bytes);

}  // namespace foretrace
