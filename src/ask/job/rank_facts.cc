#include "ask/job/rank_facts.h"

#include <algorithm>

#include "base/numbers/scaling.h"

namespace foretrace {

RankFacts rank_facts(const Job& job, std::size_t rank) {
  const WorldRank& world = job.world[rank];
  RankFacts facts;
  facts.number = world.number;
  if (job.join.ranks.empty()) return facts;
  const CollectiveTotals& met = job.join.ranks[world.recorded];
  facts.matched = met.matched, facts.unmatched = met.unmatched;
  facts.waits = met.waits, facts.transfer = met.transfer;
  facts.times_last = met.times_last, facts.keeps_waiting = met.keeps_waiting;
  const RankClock& clock = job.join.clocks[world.recorded];
  facts.clock_offset = clock.skew, facts.clock_residual = clock.residual;
  facts.clock_drift = clock.drift;
  return facts;
}

void note_ranks(const Job& job, Notes& notes) {
  if (!job.apart.empty())
    notes.add(Severity::info, "each rank is looked at alone: the recordings are not of one job",
              job.apart);
  if (!job.is_joined()) return;
  const auto latest = std::max_element(job.join.ranks.begin(), job.join.ranks.end(),
                                       [](const CollectiveTotals& a, const CollectiveTotals& b) {
                                         return a.keeps_waiting < b.keeps_waiting;
                                       });
  const Rank& rank = job.ranks[static_cast<std::size_t>(latest - job.join.ranks.begin())];
  if (ratio(latest->keeps_waiting, rank.inference.recorded.length) < kMuchWaiting) return;
  notes.add(Severity::info, "the other ranks wait " + to_text(latest->keeps_waiting) +
                                " for rank " + std::to_string(rank.number) + ", which enters " +
                                std::to_string(latest->times_last) + " of " +
                                std::to_string(latest->matched) + " collectives last");
}

}  // namespace foretrace
