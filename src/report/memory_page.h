#pragma once

// The parts of the memory page that are the same for every answer.

#include <string_view>

namespace foretrace {

/// For light and dark; the colours of uses are --use-0 to --use-7, by MemoryUse.
std::string_view memory_page_style();

/// Draws `memory` (a JSON object, see memory_html.cc) on the canvases "level" and "blocks".
std::string_view memory_page_script();

}  // namespace foretrace
