#pragma once

// Caches traces in our own format, which is read many times faster than JSON. A cache that cannot
// be used is ignored: nothing here throws because of it.

#include <optional>
#include <string>
#include <string_view>

#include "foretrace/trace.h"
#include "import/files/trace_file.h"

namespace foretrace {

/// Digest of the sources of all importers, computed by the build. It is part of the key of a cached
/// copy, so a copy made by other importers is never used.
std::string_view reading_version();

/// The cached copy of the trace in a file, or in a member of an archive. It is valid only for the
/// contents that the file has at construction.
class CachedCopy {
 public:
  /// Caches nothing if `folder` is empty.
  CachedCopy(TraceFile file, std::string folder);

  /// Returns the trace if there is a copy of exactly this file.
  std::optional<Trace> read() const;
  /// Writes a copy if the file is long enough to be worth it and has not changed since
  /// construction.
  void write(const Trace& trace) const;

 private:
  std::string place() const;

  TraceFile file_;
  std::string folder_;
  std::string place_;  ///< Path of the copy; empty if there cannot be one.
};

}  // namespace foretrace
