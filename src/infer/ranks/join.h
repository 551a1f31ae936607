#pragma once

// Joins the recordings of several ranks: finds which collectives of different ranks are the same,
// what time on one rank's clock is what time on another's, and how much of each collective was
// waiting for the last rank and how much transfer.
//
//     rank 0   ...|CCCCCCCC|       before: two tasks of 8 and 4
//     rank 1   .......|CCCC|
//
//     rank 0   ...|~~~~TTTT|       after: one meeting, rank 0 waits 4 for rank 1 to enter
//     rank 1   .......|TTTT|

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretrace/infer.h"
#include "foretrace/notes.h"
#include "graph/meeting.h"

namespace foretrace {

/// A rank's clock against the common one, found from collectives that end on all ranks at the same
/// time.
struct RankClock {
  /// Add to a time since the begin of the rank's recording to get the common time. The first rank
  /// begins at 0.
  Nanoseconds offset{0};
  /// How much of it is the difference of the clocks, and not of when recording began.
  Nanoseconds skew{0};
  double drift = 0;         ///< Gained on the common clock, as a share of the time that passes.
  Nanoseconds residual{0};  ///< How far apart the ends still are, in the median.
  std::size_t common = 0;   ///< Collectives it was found from; 0: it is taken as recorded.
  Nanoseconds pivot{0};     ///< Time of the rank at which `offset` holds exactly.

  Nanoseconds common_time(Nanoseconds own) const {
    const double drifted = drift * static_cast<double>((own - pivot).count());
    return own + offset + Nanoseconds(static_cast<std::int64_t>(drifted));
  }
};

/// Sums over the meetings of one rank.
struct RankMeetings {
  std::size_t matched = 0, unmatched = 0;  ///< Collectives, with and without those of other ranks.
  Nanoseconds waits{0};                    ///< For ranks that enter later.
  Nanoseconds transfer{0};                 ///< In those that are matched.
  std::size_t times_last = 0;              ///< Meetings that it entered last.
  Nanoseconds keeps_waiting{0};            ///< By how much it was then behind the one before.
};

struct RankJoin {
  std::vector<RankClock> clocks;    ///< By rank.
  std::vector<RankMeetings> ranks;  ///< By rank.
  std::vector<Meeting> meetings;    ///< In order of the common time at which the last entered.
  /// Members that were recorded to leave just before the last entered, which only clocks explain.
  std::size_t crossed = 0;
  Notes notes;
  /// The job that was asked for: the recorded ranks, then others in order of their numbers. Members
  /// of meetings are of it.
  struct WorldRank {
    std::int32_t number = 0;
    std::uint32_t recorded = 0;  ///< The recorded rank that stands for it.
  };
  std::vector<WorldRank> world;
};

/// `labels` name the ranks in errors: "rank 1 (run/rank1.json)". Empty if no rank recorded a
/// collective. Throws TraceError if the recordings cannot be of one job: the same rank twice, a
/// rank beyond the size of the job, sizes that differ, collectives that do not fit together.
/// Linear in the collectives, apart from sorting. A `world_size` beside 0 is that of the whole job:
/// recorded ranks stand for the others by their places in the groups. Throws Error if it does not
/// fit these.
RankJoin join_ranks(std::span<const Inference* const> ranks, std::span<const std::string> labels,
                    std::int32_t world_size = 0);

}  // namespace foretrace
