#pragma once

// Replays several ranks together. In a collective, each rank waits until the last has entered.
//
//     rank 0   ...|E......|TTTT|      E enters, T transfer: the task of the collective
//     rank 1   .......|E..|TTTT|
//                     all entered
//
// A collective becomes three kinds of tasks on the existing lanes of its members, so that any
// replay can run it: an "enter" in front of each member's task, one marker behind all enters, and
// the tasks themselves, with the duration of the transfer alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "graph/matched_collective.h"

namespace foretrace {

/// A rank to replay: its graph, which a transform may have edited, and when it begins on the common
/// clock.
struct RankGraph {
  const Graph* graph = nullptr;
  Nanoseconds begins{0};  ///< Never negative.
};

class JointRows;

class JointGraph {
 public:
  /// Members whose task a transform removed do not take part. Takes linear time.
  JointGraph(std::span<const RankGraph> ranks, const std::vector<MatchedCollective>& collectives);

  /// The graph of all ranks. Lane names begin with the number of their rank.
  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  /// The joint task of a task of one rank.
  TaskId task(std::size_t rank, TaskId rank_task) const {
    return id_offsets_[rank].shifted(rank_task);
  }
  /// The joint task at which `rank_task` starts: its enter marker, or the task itself if it has
  /// none.
  TaskId start_of(std::size_t rank, TaskId rank_task) const;

  /// Extracts the times of one rank from those of all, on its own clock. A task of a collective
  /// then lasts from its enter, so it includes the wait for the others. Computes memory from the
  /// rank's graph if `memory`.
  Timeline of_rank(std::size_t rank, const Timeline& joint, bool memory) const;

  std::size_t rank_count() const { return ranks_.size(); }
  const RankGraph& rank(std::size_t rank) const { return ranks_[rank]; }
  /// The first lane of a rank, whose lanes end where those of the next begin.
  std::uint32_t first_lane(std::size_t rank) const {
    return rank < ranks_.size() ? id_offsets_[rank].first_lane
                                : static_cast<std::uint32_t>(graph_.lane_count());
  }
  /// The graph of a rank with the durations in `edited`, a clone of graph() with other times.
  /// `replayed` is the result of of_rank(): collectives last as long as in it.
  Graph graph_of_rank(std::size_t rank, const Graph& edited, const Timeline& replayed) const;

 private:
  void reserve(const std::vector<MatchedCollective>& collectives);
  void begin_later(std::uint32_t first_lane, Nanoseconds begins);
  void add(const MatchedCollective& collective);
  TaskId add_enter(TaskId task);

  Graph graph_;
  std::vector<RankGraph> ranks_;
  std::vector<Graph::IdOffsets> id_offsets_;  ///< By rank.
  std::vector<TaskId> enters_;                ///< Enter marker of each task, or kNoTask.
  std::unordered_map<TaskId, Nanoseconds>
      full_durations_;  ///< Durations that include the wait for others.
};

struct JointOptions {
  bool reasons = false;
  bool memory = true;
  /// Keeps the rows for more replays of the same structure if there are at most this many tasks; 0:
  /// never.
  std::size_t most_rows_kept = 0;
  bool folds = true;  ///< Replays ranks that are provably alike once; see fold.h.
};

struct JointReplay {
  /// By rank: the first rank that is alike, or itself.
  std::vector<std::uint32_t> first_alike;
  /// The ranks that were replayed: the first of each class of alike ranks.
  std::vector<std::uint32_t> kept;
  /// By rank, on its own clock; empty for ranks that were not replayed. See of().
  std::vector<Timeline> timelines;
  /// The rows of the kept ranks, if requested; nullptr if they cannot be replayed as rows.
  std::shared_ptr<const JointRows> rows;
  /// All kept ranks as one graph with its times; set only with reasons.
  std::shared_ptr<const JointGraph> joint;
  Timeline times;

  const Timeline& of(std::size_t rank) const { return timelines[first_alike[rank]]; }
};

/// Replays all ranks together. Throws as simulate() does.
JointReplay simulate_jointly(std::span<const RankGraph> ranks,
                             const std::vector<MatchedCollective>& collectives,
                             const JointOptions& options = {});

}  // namespace foretrace
