#include <cmath>
#include <limits>

#include "foretrace/machine.h"

namespace foretrace {

Bytes swappable(Nanoseconds interval, Bandwidth out, Bandwidth in) {
  const bool can_move = out.bytes_per_second > 0 && in.bytes_per_second > 0;
  if (interval <= 0ns || !can_move) return {};
  // The wider type keeps every byte of an interval of hours.
  const long double away = out.bytes_per_second, back = in.bytes_per_second;
  const long double bytes =
      static_cast<long double>(interval.count()) / 1e9L / (1 / away + 1 / back);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (!(bytes < static_cast<long double>(kMost))) return Bytes{kMost};
  return Bytes{static_cast<std::int64_t>(std::floor(bytes))};
}

}  // namespace foretrace
