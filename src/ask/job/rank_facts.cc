#include "ask/job/rank_facts.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "base/wording.h"

namespace foretrace {

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
