#pragma once

#include <string>
#include <string_view>

#include "foretrace/units.h"

namespace foretrace {

/// Returns a csv_cell() in double quotes; quotes in it are doubled.
std::string csv_text(std::string_view text);
/// Microseconds with three decimals, which is exact: "12.345".
std::string microseconds_cell(Nanoseconds time);

}  // namespace foretrace
