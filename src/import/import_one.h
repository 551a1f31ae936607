#pragma once

#include <new>
#include <stdexcept>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files/trace_file.h"

namespace foretrace {

/// A reader ran out of memory. Reading the next file would fail as well, so the import ends.
class NoMemoryLeft : public TraceError {
 public:
  using TraceError::TraceError;
};

/// Calls `read`. Throws NoMemoryLeft with the path if memory runs out.
template <class Read>
auto with_memory(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // The size exceeds the largest possible container.
  }
  throw NoMemoryLeft(path + ": cannot be read: it needs more memory than there is");
}

/// Reads a trace that traces_in() returned, or its cached copy.
Trace import_one(const TraceFile& file, const ImportOptions& options);

}  // namespace foretrace
