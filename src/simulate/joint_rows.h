#pragma once

// Several ranks as rows that are replayed part by part: a rank runs until it enters a collective,
// then others run, and once all members have entered it continues behind the collective.
//
//     rank 0   aaaa|E ........ |cccc|E      order: a b d c, each up to the next E
//     rank 1   bbbbbbbbbbbb|E  |dd|E
//
// The order of the parts depends on structure alone, so it serves any durations.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulate/joint_replay.h"
#include "simulate/pass.h"
#include "simulate/rows.h"

namespace foretrace {

class JointRows {
 public:
  /// Returns nullopt if a rank has shared or priority lanes, or if the row orders of the ranks
  /// would deadlock. Throws Error if the graph of a rank has a cycle. Takes linear time.
  static std::optional<JointRows> make(std::span<const RankGraph> ranks,
                                       const std::vector<MatchedCollective>& collectives,
                                       RowOrder order = RowOrder::kept);

  std::size_t rank_count() const { return ranks_.size(); }
  std::size_t task_count() const;
  /// Row of each task of a rank.
  std::span<const std::uint32_t> order(std::size_t rank) const {
    return ranks_[rank].rows.position;
  }
  /// Durations by row; for a task of a collective, the transfer alone.
  std::span<const Nanoseconds> durations(std::size_t rank) const {
    return ranks_[rank].rows.duration;
  }

  /// Whether a task of the rank overlaps (by a tail) with one of the marked rows.
  bool is_overlapped(std::size_t rank, const std::vector<char>& rows) const;

  /// One rank in eight replays: its durations by row, and where to write the times of its probes.
  struct RankSets {
    EightDurations durations;
    ProbeTimes probe_times;
  };
  /// Replays eight times at once, each rank on its own clock. Returns the greatest finish of each
  /// rank.
  std::vector<EightTimes> replay_eight(std::span<const RankSets> sets) const;

  /// Replays once. Returns timelines by rank, each on its own clock, as JointGraph::of_rank() does
  /// but without memory and reasons.
  std::vector<Timeline> replay() const;

 private:
  /// A task of a rank in a collective, which ends a part.
  struct Stop {
    std::uint32_t row = 0;
    std::uint32_t collective = 0;
    bool waits = true;  ///< False if it left before the last had entered.
  };
  struct RankRows {
    Rows rows;
    std::vector<Stop> stops;  ///< In order of their rows.
    Nanoseconds begins{0};    ///< On the common clock.
  };

  struct Progress;

  bool find_order();
  /// Converts the times of `done` to the rank's own clock.
  static Timeline timeline_of(const RankRows& rank, Progress& done);

  std::vector<RankRows> ranks_;
  std::vector<std::uint32_t> members_;  ///< Number of members, by collective.
  std::vector<std::uint32_t> order_;  ///< The rank that runs its next part, for each part in turn.
};

}  // namespace foretrace
