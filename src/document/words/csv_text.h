#pragma once

#include <string>
#include <string_view>

namespace foretrace {

/// Returns a csv_cell() in double quotes; quotes in it are doubled.
std::string csv_text(std::string_view text);

}  // namespace foretrace
