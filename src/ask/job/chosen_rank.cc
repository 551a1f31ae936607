#include "ask/job/chosen_rank.h"

#include <algorithm>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "foretrace/answer/memory_peak.h"

namespace foretrace {
namespace {

/// A straggler works at least this many times as long as the median of the other ranks, and these
/// wait for at least this share of its step.
constexpr double kClearlyLonger = 1.1;
constexpr double kClearlyWaiting = 0.1;

}  // namespace

MemoryNeed need_of(const std::vector<MemoryPeak>& peaks) {
  const bool refused = std::any_of(peaks.begin(), peaks.end(), [](const MemoryPeak& peak) {
    return peak.device >= 0 && peak.out_of_memory;
  });
  return {.is_refused = refused,
          .reserved = greatest_reserved(peaks).value_or(Bytes{}),
          .allocated = greatest_allocated(peaks).value_or(Bytes{})};
}

std::optional<Straggler> straggler_among(const std::vector<RankTimes>& ranks) {
  if (ranks.size() < 2) return {};
  RankWithMost<Nanoseconds> busiest;
  for (std::size_t i = 0; i < ranks.size(); ++i) busiest.consider(i, ranks[i].work);
  std::vector<Nanoseconds> other_work, other_waits;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i == busiest.rank()) continue;
    other_work.push_back(ranks[i].work);
    other_waits.push_back(ranks[i].step - ranks[i].work);
  }
  const Straggler found{busiest.rank(), median(other_work), median(other_waits)};
  const RankTimes& rank = ranks[found.rank];
  if (rank.work < scaled(found.others_work, kClearlyLonger) ||
      found.others_wait < scaled(rank.step, kClearlyWaiting))
    return {};
  return found;
}

}  // namespace foretrace
