#pragma once

// How much of a task may be left when the next one starts.
//
//     A  ####        A at half its time   ##
//     B     ####                           ####      a quarter of A is left in both
//
// The overlap is a share of the task, not a time: it scales with the task, so that no task starts
// before the one that it waits for.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "foretrace/units.h"

namespace foretrace {

class Tail {
 public:
  constexpr Tail() = default;
  /// The nearest to `share`, which is held between 0 and 1.
  static Tail of_share(double share) {
    Tail tail;
    tail.parts_ = static_cast<std::uint16_t>(std::lround(std::clamp(share, 0.0, 1.0) * kWhole));
    return tail;
  }

  double share() const { return parts_ / kWhole; }
  bool empty() const { return parts_ == 0; }
  /// The tail of a task that takes so long, rounded down.
  Nanoseconds of(Nanoseconds duration) const { return Nanoseconds(of(duration.count(), share())); }
  static std::int64_t of(std::int64_t duration, double share) {
    return static_cast<std::int64_t>(static_cast<double>(duration) * share);
  }
  friend bool operator==(const Tail&, const Tail&) = default;

 private:
  static constexpr double kWhole = 65535;
  std::uint16_t parts_ = 0;  ///< In units of 1 / kWhole.
};

/// A tail, and how long after it the other starts.
struct Overlap {
  Tail tail{};
  Nanoseconds lag{0};

  /// The lag past the finish of a task of this duration; negative means before its finish.
  Nanoseconds past_finish(Nanoseconds duration) const { return lag - tail.of(duration); }
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// A task starts `part` before the end of one that takes `whole`, to the nanosecond; together with
/// it if `part` is longer.
inline Overlap overlap_of(Nanoseconds part, Nanoseconds whole) {
  if (part <= Nanoseconds(0) || whole <= Nanoseconds(0)) return {};
  part = std::min(part, whole);
  const double share = static_cast<double>(part.count()) / static_cast<double>(whole.count());
  // The nearest may be too short by half of its last digit.
  constexpr double kDigit = 1.0 / 65535;
  Overlap found{Tail::of_share(share), {}};
  if (found.tail.of(whole) < part) found.tail = Tail::of_share(share + kDigit);
  found.lag = found.tail.of(whole) - part;
  return found;
}

}  // namespace foretrace
