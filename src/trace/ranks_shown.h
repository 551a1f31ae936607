#pragma once

// The mark of a file that was exported to show all ranks of a job in a viewer. Its format cannot
// tell the ranks apart, so the importer must not take it for the recording of one rank.

#include <string_view>

namespace foretrace {

/// Key in Trace::metadata; the value is the number of ranks.
inline constexpr std::string_view kRanksShown = "foretraceRanksShown";

}  // namespace foretrace
