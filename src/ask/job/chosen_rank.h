#pragma once

// Picks the rank of a job that a question is answered for.
//
//     the slowest     the others wait for it: it tells how long the job takes
//     the fullest     tells whether the job fits
//     the straggler   the one that collectives of all others wait for: what to look into

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/error.h"
#include "foretrace/units.h"

namespace foretrace {

/// Goes through the ranks of a job, and remembers the one with most of something: of equal ones the
/// first.
template <class Measure>
class RankWithMost {
 public:
  /// Whether it has more than all before it.
  bool consider(std::size_t rank, const Measure& measure) {
    if (rank_ && !(measure > most_)) return false;
    rank_ = rank;
    most_ = measure;
    return true;
  }
  /// REQUIRES: a rank was considered.
  std::size_t rank() const { return CHECK(rank_.has_value()), *rank_; }
  /// REQUIRES: a rank was considered.
  const Measure& most() const { return CHECK(rank_.has_value()), most_; }

 private:
  std::optional<std::size_t> rank_;
  Measure most_{};
};

/// By the step time.
using Slowest = RankWithMost<Nanoseconds>;

/// Memory that a rank needs of a device. Requests that were refused need more than any device has.
struct MemoryNeed {
  bool is_refused = false;
  Bytes reserved{}, allocated{};
  friend auto operator<=>(const MemoryNeed&, const MemoryNeed&) = default;
};
MemoryNeed need_of(const std::vector<MemoryPeak>& peaks);

using Fullest = RankWithMost<MemoryNeed>;

/// The step of a rank, and the step without waits for other ranks.
struct RankTimes {
  std::int32_t rank = 0;
  Nanoseconds step{0}, own{0};
};

/// Medians over the ranks that are not the straggler.
struct Straggler {
  std::size_t rank = 0;
  Nanoseconds others_own{0}, others_wait{0};
};
/// Nothing where no rank clearly keeps the others waiting.
std::optional<Straggler> straggler_among(const std::vector<RankTimes>& ranks);

}  // namespace foretrace
