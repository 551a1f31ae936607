#pragma once

#include <string_view>

namespace foretrace {

constexpr std::string_view kVersion = "0.2.0";

}  // namespace foretrace
