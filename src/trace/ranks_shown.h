#pragma once

// How a file that draws all ranks of a job for viewers says so: it has no place for what tells
// ranks apart, so it must not be taken for the recording of one.

#include <string_view>

namespace foretrace {

/// Of Trace::metadata; the value is how many ranks there are.
inline constexpr std::string_view kRanksShown = "foretraceRanksShown";

}  // namespace foretrace
