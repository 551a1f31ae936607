#pragma once

#include <string>
#include <string_view>

namespace foretrace {

/// `text` as a JSON string, quotes included; bytes that are not UTF-8 become replacement
/// characters.
std::string json_string(std::string_view text);

}  // namespace foretrace
