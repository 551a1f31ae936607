#pragma once

#include <string_view>

namespace foretrace {

/// Digest of the sources of all importers, computed by the build. It is part of the key of a cached
/// copy, so a copy made by other importers is never used.
std::string_view reading_version();

}  // namespace foretrace
