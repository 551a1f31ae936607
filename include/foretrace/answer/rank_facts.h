#pragma once

// One of several ranks that wait for each other, as it was recorded.

#include <cstddef>
#include <cstdint>

#include "foretrace/units.h"

namespace foretrace {

struct RankFacts {
  std::int32_t number = 0;

  // Over the whole recording:
  std::size_t matched = 0, unmatched = 0;  ///< Collectives found on other ranks, and the rest.
  Nanoseconds waits{0}, transfer{0};       ///< Waiting and transfer time of the matched ones.
  std::size_t times_last = 0;              ///< Collectives that it entered last.
  Nanoseconds keeps_waiting{0};            ///< Sum of its lag behind the last but one in those.
  /// Its clock relative to that of the first rank; and how far apart the ends of common collectives
  /// still are, as a median.
  Nanoseconds clock_offset{0}, clock_residual{0};
  /// Its gain on the common clock, as a share of the time that passes.
  double clock_drift = 0;
};

}  // namespace foretrace
