#pragma once

#include <string>
#include <string_view>

namespace foretrace {

/// In double quotes, those inside doubled.
std::string csv_text(std::string_view text);

}  // namespace foretrace
