#include "timeline/covered_time.h"

#include <algorithm>
#include <utility>

namespace foretrace {

void CoveredTime::finish() {
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

Nanoseconds CoveredTime::within(Nanoseconds from, Nanoseconds to) const {
  return from < to ? before(to) - before(from) : 0ns;
}

Nanoseconds CoveredTime::before(Nanoseconds time) const {
  const auto next = std::partition_point(pieces_.begin(), pieces_.end(),
                                         [&](const Piece& piece) { return piece.from < time; });
  if (next == pieces_.begin()) return 0ns;
  const Piece& last = *std::prev(next);
  return last.before + std::min(time, last.to) - last.from;
}

}  // namespace foretrace
