#pragma once

#include <string>

namespace foretrace {

/// Whether the file is an archive, or begins as a trace of any known format does; false if it
/// cannot be read. Reads no more than the beginning.
bool holds_trace(const std::string& path);

}  // namespace foretrace
