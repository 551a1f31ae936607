#include "job/chosen_rank.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "base/wording.h"
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

RankFacts rank_facts(const JobRanks& job, std::size_t rank) {
  const WorldRank& world = job.world[rank];
  RankFacts facts;
  facts.number = world.number;
  if (job.join.ranks.empty()) return facts;
  const CollectiveTotals& totals = job.join.ranks[world.recorded];
  facts.matched = totals.matched, facts.unmatched = totals.unmatched;
  facts.waits = totals.waits, facts.transfer = totals.transfer;
  facts.times_last = totals.times_last, facts.keeps_waiting = totals.keeps_waiting;
  const RankClock& clock = job.join.clocks[world.recorded];
  facts.clock_offset = clock.skew, facts.clock_residual = clock.residual;
  facts.clock_drift = clock.drift;
  return facts;
}

void note_ranks(const JobRanks& job, Notes& notes) {
  if (!job.mismatch.empty())
    notes.add(Severity::info, "each rank is looked at alone: the recordings are not of one job",
              job.mismatch);
  if (!job.is_joined()) return;
  const auto latest = std::max_element(job.join.ranks.begin(), job.join.ranks.end(),
                                       [](const CollectiveTotals& a, const CollectiveTotals& b) {
                                         return a.keeps_waiting < b.keeps_waiting;
                                       });
  const Rank& rank = job.ranks[static_cast<std::size_t>(latest - job.join.ranks.begin())];
  if (ratio(latest->keeps_waiting, rank.inference.recorded.length) < kMuchWaiting) return;
  notes.add(Severity::info,
            fmt::format("the other ranks wait {} in all for rank {}, which enters {} of {} last",
                        to_text(latest->keeps_waiting), rank.number, grouped(latest->times_last),
                        counted(latest->matched, "collective")));
}

}  // namespace foretrace
