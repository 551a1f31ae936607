#pragma once

// Copies of traces in our own format, which are read many times faster than JSON. A cache that
// cannot be used is ignored: nothing here fails.

#include <optional>
#include <string>

#include "foretrace/trace.h"
#include "import/files/trace_file.h"

namespace foretrace {

/// The copy of the trace in a file, or in a member of an archive, in the present state of the file.
class CachedCopy {
 public:
  /// Without a folder there is no copy.
  CachedCopy(TraceFile file, std::string folder);

  /// Returns the trace if there is a copy of exactly this file.
  std::optional<Trace> read() const;
  /// Keeps a copy if the file is long enough for that to matter and did not change meanwhile.
  void write(const Trace& trace) const;

 private:
  std::string place() const;

  TraceFile file_;
  std::string folder_;
  std::string place_;  ///< Empty: there cannot be a copy.
};

}  // namespace foretrace
