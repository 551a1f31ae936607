#pragma once

// Copies of traces in our own format, which are read many times faster than JSON. A cache that
// cannot be used is as good as none: nothing here fails.

#include <optional>
#include <string>

#include "foretrace/trace.h"

namespace foretrace {

/// The copy of the trace in `path`, if there is one of this very file.
std::optional<Trace> read_cached(const std::string& path, const std::string& folder);

/// Keeps a copy, if the file is long enough for that to matter.
void write_cached(const Trace& trace, const std::string& path, const std::string& folder);

}  // namespace foretrace
