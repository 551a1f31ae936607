#pragma once

#include "foretrace/trace.h"
#include "import/files/source.h"

namespace foretrace {

/// Reads the packets in `bytes`, which are already decompressed. Throws TraceError if they are not
/// a Perfetto trace or contain no slice.
Trace read_perfetto(PeekedSource& bytes);

}  // namespace foretrace
