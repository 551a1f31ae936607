#pragma once

#include "foretrace/trace.h"
#include "import/files/source.h"
#include "import/kineto/merged_ranks.h"

namespace foretrace {

/// Reads the Chrome trace in `bytes`, which are already decompressed, or one rank of it. Throws
/// TraceError if they are not JSON or contain no events.
Trace read_kineto(PeekedSource& bytes, const MergedRank& rank = {});

}  // namespace foretrace
