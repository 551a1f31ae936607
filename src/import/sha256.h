#pragma once

#include <string>
#include <string_view>

namespace foretrace {

/// Lower-case hex.
std::string sha256_of_text(std::string_view text);

}  // namespace foretrace
