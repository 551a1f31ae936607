#pragma once

#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// The union of intervals, and how much of it lies before a given time.
class CoveredTime {
 public:
  void add(Nanoseconds from, Nanoseconds to) {
    if (from < to) pieces_.push_back({from, to, {}});
  }

  /// Call it once, behind the last add().
  void finish();
  /// How much of an interval is covered. REQUIRES: finish().
  Nanoseconds within(Nanoseconds from, Nanoseconds to) const;

 private:
  struct Piece {
    Nanoseconds from{}, to{};
    Nanoseconds before{};  ///< In earlier pieces.
  };

  Nanoseconds before(Nanoseconds time) const;

  std::vector<Piece> pieces_;
};

}  // namespace foretrace
