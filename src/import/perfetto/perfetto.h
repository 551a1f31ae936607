#pragma once

#include "foretrace/trace.h"
#include "import/files/source.h"

namespace foretrace {

/// The packets in `bytes`, already decompressed. Throws TraceError.
Trace read_perfetto(PeekedSource& bytes);

}  // namespace foretrace
