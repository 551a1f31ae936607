#pragma once

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files/trace_file.h"

namespace foretrace {

/// A reader ran out of memory, and so would the reader of the next file.
class NoMemoryLeft : public TraceError {
 public:
  using TraceError::TraceError;
};

/// Like import_trace(), for a file or part that is already known.
Trace import_one(const TraceFile& file, const ImportOptions& options);

}  // namespace foretrace
