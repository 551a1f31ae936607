#pragma once

// Joins the recordings of several ranks: finds which collectives of different ranks are the same,
// how the ranks' clocks relate, and how much of each collective was waiting for the last rank and
// how much transfer.
//
//     rank 0   ...|CCCCCCCC|       before: two tasks of 8 and 4
//     rank 1   .......|CCCC|
//
//     rank 0   ...|~~~~TTTT|       after: one collective, rank 0 waits 4 for rank 1 to enter
//     rank 1   .......|TTTT|

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretrace/infer.h"
#include "foretrace/notes.h"
#include "graph/matched_collective.h"

namespace foretrace {

/// The relation of a rank's clock to the common one, found from collectives that end on all ranks
/// at the same time.
struct RankClock {
  /// Add it to a time since the start of the rank's recording to get the common time. The first
  /// rank begins at 0.
  Nanoseconds offset{0};
  /// The part of `offset` that is a difference of the clocks, not of when recording began.
  Nanoseconds skew{0};
  double drift = 0;         ///< Time gained on the common clock, as a share of the elapsed time.
  Nanoseconds residual{0};  ///< Median distance of the ends after the correction.
  /// Number of collectives it was found from; 0 if the recorded clock is used.
  std::size_t common = 0;
  Nanoseconds pivot{0};  ///< Own time of the rank at which `offset` holds exactly.

  Nanoseconds common_time(Nanoseconds own) const {
    const double drifted = drift * static_cast<double>((own - pivot).count());
    return own + offset + Nanoseconds(static_cast<std::int64_t>(drifted));
  }
};

/// Totals over the collectives of one rank.
struct CollectiveTotals {
  /// Collectives with and without a counterpart on other ranks.
  std::size_t matched = 0, unmatched = 0;
  Nanoseconds waits{0};        ///< Time spent waiting for ranks that enter later.
  Nanoseconds transfer{0};     ///< Transfer time of matched collectives.
  std::size_t times_last = 0;  ///< Number of collectives that it entered last.
  /// In these, the time by which it entered after the one before it.
  Nanoseconds keeps_waiting{0};
};

struct RankJoin {
  std::vector<RankClock> clocks;        ///< By rank.
  std::vector<CollectiveTotals> ranks;  ///< By rank.
  std::vector<MatchedCollective>
      collectives;  ///< In order of the common time at which the last entered.
  /// Number of members that left just before the last entered, as recorded; only inexact clocks
  /// explain it.
  std::size_t crossed = 0;
  Notes notes;
  /// The ranks of the requested job: the recorded ones, then others in order of their numbers.
  /// Members of collectives are indices into it.
  struct WorldRank {
    std::int32_t number = 0;
    std::uint32_t recorded = 0;  ///< Index of the recorded rank that stands for it.
  };
  std::vector<WorldRank> world;
};

/// Joins the ranks. `labels` name them in errors: "rank 1 (run/rank1.json)". Without collectives
/// in any recording, none are matched. Throws TraceError if the recordings cannot be of one job:
/// the same rank twice, a rank beyond the size of the job, sizes that differ, collectives that do
/// not fit together. Takes linear time in the collectives, apart from sorting. If `world_size` is
/// not 0, it is the size of the whole job: recorded ranks stand for the others by their places in
/// the groups. Throws Error if it does not fit the recorded ranks.
RankJoin join_ranks(std::span<const Inference* const> ranks, std::span<const std::string> labels,
                    std::int32_t world_size = 0);

}  // namespace foretrace
