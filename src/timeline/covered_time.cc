#include "timeline/covered_time.h"

#include <algorithm>
#include <utility>

namespace foretrace {

void CoveredTime::finish() {
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.from < b.from; });
  std::vector<Interval> merged;
  for (const Interval& interval : intervals_) {
    if (!merged.empty() && interval.from <= merged.back().to) {
      merged.back().to = std::max(merged.back().to, interval.to);
    } else {
      merged.push_back(interval);
    }
  }
  Nanoseconds sum{0};
  for (Interval& interval : merged)
    interval.before = std::exchange(sum, sum + (interval.to - interval.from));
  intervals_ = std::move(merged);
}

Nanoseconds CoveredTime::within(Nanoseconds from, Nanoseconds to) const {
  return from < to ? before(to) - before(from) : 0ns;
}

Nanoseconds CoveredTime::before(Nanoseconds time) const {
  const auto next =
      std::partition_point(intervals_.begin(), intervals_.end(),
                           [&](const Interval& interval) { return interval.from < time; });
  if (next == intervals_.begin()) return 0ns;
  const Interval& last = *std::prev(next);
  return last.before + std::min(time, last.to) - last.from;
}

}  // namespace foretrace
