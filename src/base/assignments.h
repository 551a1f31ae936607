#pragma once

// The text of settings, "workers=4,where.name=/a,b/": where one value ends and the next begins.

#include <cstddef>
#include <string_view>

namespace foretrace {

/// One past the last character of a value that begins with a slash, quote or bracket and is closed,
/// with its commas; 0 for an ordinary value, which ends at the next comma.
std::size_t end_of_enclosed(std::string_view value);

}  // namespace foretrace
