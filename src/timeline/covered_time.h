#pragma once

#include <algorithm>
#include <utility>
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
  void finish() {
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) { return a.from < b.from; });
    std::vector<Piece> whole;
    for (const Piece& piece : pieces_) {
      if (!whole.empty() && piece.from <= whole.back().to) {
        whole.back().to = std::max(whole.back().to, piece.to);
      } else {
        whole.push_back(piece);
      }
    }
    Nanoseconds sum{0};
    for (Piece& piece : whole) piece.before = std::exchange(sum, sum + (piece.to - piece.from));
    pieces_ = std::move(whole);
  }

  /// How much of an interval is covered. REQUIRES: finish().
  Nanoseconds within(Nanoseconds from, Nanoseconds to) const {
    return from < to ? before(to) - before(from) : 0ns;
  }

 private:
  struct Piece {
    Nanoseconds from{}, to{};
    Nanoseconds before{};  ///< In earlier pieces.
  };

  Nanoseconds before(Nanoseconds time) const {
    const auto next = std::partition_point(pieces_.begin(), pieces_.end(),
                                           [&](const Piece& piece) { return piece.from < time; });
    if (next == pieces_.begin()) return 0ns;
    const Piece& last = *std::prev(next);
    return last.before + std::min(time, last.to) - last.from;
  }

  std::vector<Piece> pieces_;
};

}  // namespace foretrace
