#pragma once

#include <string>
#include <string_view>

namespace foretrace {

/// Returns `text` as a JSON string, including quotes; bytes that are not UTF-8 become replacement
/// characters.
std::string json_string(std::string_view text);

}  // namespace foretrace
