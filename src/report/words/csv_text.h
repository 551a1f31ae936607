#pragma once

#include <string>
#include <string_view>

namespace foretrace {

/// A csv_cell() in double quotes; quotes inside are doubled.
std::string csv_text(std::string_view text);

}  // namespace foretrace
