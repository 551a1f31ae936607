#pragma once

// Styles and scripts of the pages. They are separate files (page/, vendor/) that the build embeds
// in the program, so that one binary can write pages that need nothing else.

#include <string_view>

namespace foretrace {

/// Returns the text of a file such as "page/shell.js". REQUIRES: the file is embedded.
std::string_view embedded(std::string_view name);

}  // namespace foretrace
