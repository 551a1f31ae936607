#pragma once

// Several ranks as rows that are passed over part by part: a rank goes on until it enters a
// meeting, then others do, and once all members have entered it goes on behind it.
//
//     rank 0   aaaa|E ........ |cccc|E      order: a b d c, each up to the next E
//     rank 1   bbbbbbbbbbbb|E  |dd|E
//
// Which part comes next depends on structure alone: the order serves any durations.

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
  /// Nothing where a rank has lanes that do not run their tasks in line, or where the orders in
  /// which the rows of ranks stand wait for each other. Throws Error if the graph of a rank has a
  /// cycle. Linear.
  static std::optional<JointRows> of(std::span<const JoinedGraph> ranks,
                                     const std::vector<Meeting>& meetings,
                                     RowOrder order = RowOrder::kept);

  std::size_t rank_count() const { return ranks_.size(); }
  std::size_t task_count() const;
  /// The row of each task of a rank.
  std::span<const std::uint32_t> order(std::size_t rank) const {
    return ranks_[rank].rows.position;
  }
  /// By row; that of a meeting is its transfer alone.
  std::span<const Nanoseconds> durations(std::size_t rank) const {
    return ranks_[rank].rows.duration;
  }

  /// Whether a task of the rank waits for only a share of one of these rows.
  bool is_overlapped(std::size_t rank, const std::vector<char>& rows) const;

  /// One rank in eight replays: its durations by row, and where to write times of its probes.
  struct RankSets {
    EightDurations durations;
    ProbeTimes wanted;
  };
  /// Eight replays at once, each rank on its own clock. Returns the greatest finish of each rank.
  std::vector<EightTimes> replay_eight(std::span<const RankSets> sets) const;

  /// By rank, on its own clock, as JointGraph::of_rank() has it; without memory and reasons.
  std::vector<Timeline> replay() const;

 private:
  /// A task of a rank in a meeting: it ends a part.
  struct Stop {
    std::uint32_t row = 0;
    std::uint32_t meeting = 0;
    bool waits = true;  ///< It did not leave before the last had entered.
  };
  struct RankRows {
    Rows rows;
    std::vector<Stop> stops;  ///< In order of their rows.
    Nanoseconds begins{0};    ///< On the common clock.
  };

  struct Progress;

  bool find_order();
  /// Turns the times of `done` into those of the rank's own clock.
  static Timeline timeline_of(const RankRows& rank, Progress& done);

  std::vector<RankRows> ranks_;
  std::vector<std::uint32_t> members_;  ///< By meeting.
  std::vector<std::uint32_t> order_;    ///< The ranks whose next part is passed over.
};

}  // namespace foretrace
