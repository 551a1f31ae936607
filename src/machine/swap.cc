#include <cmath>
#include <limits>

#include "foretrace/machine.h"

namespace foretrace {

Bytes swappable(Nanoseconds interval, Bandwidth out, Bandwidth in) {
  const bool can_move = out.bytes_per_second > 0 && in.bytes_per_second > 0;
  if (interval <= 0ns || !can_move) return {};
  // Only divisions and products are used, which round the same on every machine. Results above 2^53
  // bytes, more than any memory has, are rounded.
  const double away = out.bytes_per_second, back = in.bytes_per_second;
  const double bytes = static_cast<double>(interval.count()) / 1e9 / (1 / away + 1 / back);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (!(bytes < static_cast<double>(kMost))) return Bytes{kMost};
  return Bytes{static_cast<std::int64_t>(std::floor(bytes))};
}

}  // namespace foretrace
