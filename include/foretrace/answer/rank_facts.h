#pragma once

// One of several ranks that wait for each other, as it was recorded.

#include <cstddef>
#include <cstdint>

#include "foretrace/units.h"

namespace foretrace {

struct RankFacts {
  std::int32_t number = 0;

  // Over the whole recording:
  std::size_t matched = 0, unmatched = 0;  ///< Collectives with and without those of other ranks.
  Nanoseconds waits{0}, transfer{0};       ///< The two parts of those that are matched.
  std::size_t times_last = 0;              ///< Collectives that it entered last.
  Nanoseconds keeps_waiting{0};            ///< By how much it was behind the last but one then.
  Nanoseconds clock_offset{0}, clock_residual{0};  ///< Its clock against that of the first rank.
  double clock_drift = 0;
};

}  // namespace foretrace
