#pragma once

// The text of settings, "workers=4,where.name=/a,b/": where one value ends and the next begins.

#include <cstddef>
#include <string_view>

#include "foretrace/fields.h"

namespace foretrace {

/// One past the last character of a value that begins with a slash, quote or bracket and is closed,
/// with its commas; 0 for an ordinary value, which ends at the next comma.
std::size_t end_of_enclosed(std::string_view value);

/// read_json() of read_assignments(), for those who do not look at the JSON between them.
void read_assigned(std::string_view text, Described& object);

}  // namespace foretrace
