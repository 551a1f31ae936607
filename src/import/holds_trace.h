#pragma once

#include <string>

namespace foretrace {

/// Whether the file is an archive, or begins like a trace of any known format; false if it cannot
/// be read. Reads only the beginning.
bool holds_trace(const std::string& path);

}  // namespace foretrace
