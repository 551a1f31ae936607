#pragma once

#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// The union of intervals. After finish(), a query takes time logarithmic in their number.
class CoveredTime {
 public:
  void add(Nanoseconds from, Nanoseconds to) {
    if (from < to) intervals_.push_back({from, to, {}});
  }

  /// Merges the intervals. Call it once, after the last add().
  void finish();
  /// Covered time within an interval. REQUIRES: finish().
  Nanoseconds within(Nanoseconds from, Nanoseconds to) const;

 private:
  struct Interval {
    Nanoseconds from{}, to{};
    Nanoseconds before{};  ///< Covered time in earlier intervals.
  };

  Nanoseconds before(Nanoseconds time) const;

  std::vector<Interval> intervals_;
};

}  // namespace foretrace
