#pragma once

// Several ranks replayed together: where they meet, each waits for the last to enter.
//
//     rank 0   ...|E......|TTTT|      E enters, T transfer: the task of the meeting
//     rank 1   .......|E..|TTTT|
//                     all entered
//
// A meeting is three kinds of tasks on the lanes that its members have anyway, so that any replay
// can take it: an "enter" in front of each task, one marker behind all of them, and the tasks
// themselves, with the duration of the transfer alone.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "graph/meeting.h"

namespace foretrace {

/// A rank of a job that is replayed: its graph, which a transform may have edited, and when it
/// begins on the common clock.
struct JoinedGraph {
  const Graph* graph = nullptr;
  Nanoseconds begins{0};  ///< Never negative.
};

class JointRows;

class JointGraph {
 public:
  /// Members that a transform removed do not take part. Linear.
  JointGraph(std::span<const JoinedGraph> ranks, const std::vector<Meeting>& meetings);

  /// The lanes of all ranks, with the numbers of their ranks in front of their names.
  const Graph& graph() const { return graph_; }
  Graph& graph() { return graph_; }
  /// A task of a rank.
  TaskId task(std::size_t rank, TaskId own) const { return places_[rank].here(own); }
  /// Where it starts: at its enter, if it has one.
  TaskId start_of(std::size_t rank, TaskId own) const;

  /// The times of one rank, on its own clock, from those of all: a task of a meeting lasts from
  /// where it enters, with the wait for the others. Memory as of the rank's graph if `memory`.
  Timeline of_rank(std::size_t rank, const Timeline& joint, bool memory) const;

 private:
  void reserve(const std::vector<Meeting>& meetings);
  void begin_later(std::uint32_t first_lane, Nanoseconds begins);
  void add(const Meeting& meeting);
  TaskId add_enter(TaskId task);

  Graph graph_;
  std::vector<JoinedGraph> ranks_;
  std::vector<Graph::Absorbed> places_;             ///< By rank.
  std::vector<TaskId> enters_;                      ///< By task, or kNoTask; markers have none.
  std::unordered_map<TaskId, Nanoseconds> before_;  ///< Durations with the wait for others.
};

struct JointOptions {
  bool reasons = false;
  bool memory = true;
  /// Rows are kept for more replays of the same structure, up to this many tasks; 0: never.
  std::size_t most_rows_kept = 0;
  bool folds = true;  ///< Ranks that are provably alike are replayed once; see fold.h.
};

struct JointReplay {
  /// By rank: the first rank that is alike, itself if there is none before it.
  std::vector<std::uint32_t> alike;
  /// The ranks that were replayed: those that are like none before them.
  std::vector<std::uint32_t> kept;
  /// By rank, on its own clock; empty for a rank that is like one before it.
  std::vector<Timeline> timelines;
  /// The rows of the kept ranks, if asked for; nullptr where they cannot be replayed as rows.
  std::shared_ptr<const JointRows> rows;
  /// All ranks that were replayed, as one graph with its times; only with reasons.
  std::shared_ptr<const JointGraph> joint;
  Timeline times;

  const Timeline& of(std::size_t rank) const { return timelines[alike[rank]]; }
};

/// Replays all ranks together. Throws as simulate() does.
JointReplay simulate_jointly(std::span<const JoinedGraph> ranks,
                             const std::vector<Meeting>& meetings,
                             const JointOptions& options = {});

}  // namespace foretrace
