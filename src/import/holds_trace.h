#pragma once

#include <string>

namespace foretrace {

/// Whether the file is an archive or begins like a trace of a known format. Returns false if it
/// cannot be read. Reads only the beginning.
bool holds_trace(const std::string& path);

}  // namespace foretrace
