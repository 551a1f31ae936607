#pragma once

#include <string_view>

namespace foretrace {

/// Digest of the sources of all readers, made when they are built: a copy that other readers made
/// is never taken for what these would read.
std::string_view reading_version();

}  // namespace foretrace
