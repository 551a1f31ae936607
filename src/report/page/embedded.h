#pragma once

// Styles and scripts of the pages. They are files of their own (page/, vendor/), which the build
// turns into text of the program, so that one binary writes pages that need nothing else.

#include <string_view>

namespace foretrace {

/// The file "page/shell.js". A name that is not there is a bug.
std::string_view embedded(std::string_view name);

}  // namespace foretrace
