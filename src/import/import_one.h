#pragma once

#include <new>
#include <stdexcept>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files/trace_file.h"

namespace foretrace {

/// A reader ran out of memory, and so would the reader of the next file.
class NoMemoryLeft : public TraceError {
 public:
  using TraceError::TraceError;
};

/// Calls `read`, and says whose fault it is if memory runs out.
template <class Read>
auto with_memory(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {  // More than any memory could hold.
  }
  throw NoMemoryLeft(path + ": cannot be read: it needs more memory than there is");
}

/// Reads one of traces_in(), or takes its cached copy.
Trace import_one(const TraceFile& file, const ImportOptions& options);

}  // namespace foretrace
