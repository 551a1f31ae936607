#pragma once

#include "foretrace/trace.h"
#include "import/files/source.h"

namespace foretrace {

/// The Chrome trace in `bytes`, already decompressed. Throws TraceError.
Trace read_kineto(PeekedSource& bytes);

}  // namespace foretrace
