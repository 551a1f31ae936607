#pragma once

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files/trace_file.h"

namespace foretrace {

/// A reader ran out of memory. Not a matter of one file among others: the next one would, too.
class NoMemoryLeft : public TraceError {
 public:
  using TraceError::TraceError;
};

/// As import_trace(), of a file or part that is known already.
Trace import_one(const TraceFile& file, const ImportOptions& options);

}  // namespace foretrace
