#pragma once

// One graph for what-ifs that change only times: that of a rank alone, or of all ranks of a job
// that wait for each other. In the latter, work of a kind is changed on all ranks at once, and the
// step is that of the slowest.
//
//     rank 0   |LLLL KKKK|EE TTT|      on rank 0 alone, launching costs nothing: its collective
//     rank 1   |LLLLLL KKKK|E TTT|     ends when rank 1 has entered, which launches longer

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "job/step_cost.h"
#include "simulate/joint_replay.h"
#include "timeline/step_probes.h"

namespace foretrace {

/// Whether all lanes are FIFO; other graphs cannot be replayed many times at once.
bool all_lanes_fifo(const Graph& graph);

class JobGraph;

/// The tasks whose times determine the step time of each rank; see StepProbes.
class JobProbes {
 public:
  /// Throws Error unless all tasks are on FIFO lanes.
  explicit JobProbes(const JobGraph& job);

  /// By task: the stream to whose work its duration belongs, or StepProbes::kNoStream.
  std::span<const std::int32_t> stream_of() const { return stream_of_; }
  /// The work of each stream, without waits for other ranks, from the durations in `graph`.
  std::vector<Nanoseconds> work(const Graph& graph) const;

  struct Slowest {
    std::size_t rank = 0;
    Nanoseconds step_time{0};
  };
  using TimeOf = std::function<Nanoseconds(TaskId)>;
  /// Takes the times of a replay, and its work().
  Slowest slowest(const TimeOf& start, const TimeOf& finish, std::vector<Nanoseconds> work) const;

 private:
  /// One rank: its tasks are those of the job's graph.
  struct Rank {
    StepProbes probes;
    std::size_t first_stream = 0;  ///< Of its streams, among those of all ranks.
    Nanoseconds begins{0};
    std::vector<TaskId> starts_at = {}, tasks = {};  ///< Of its probes: see JobGraph::start_of().
    std::vector<TaskId> without_steps = {};          ///< All its tasks, if it has no steps.
  };
  /// The wait of a stream for other ranks, which counts as its work.
  struct Wait {
    TaskId enter = kNoTask, task = kNoTask;
    std::size_t stream = 0;
  };

  void add_rank(const JobGraph& job, std::size_t rank);

  std::vector<Rank> ranks_;
  std::vector<Wait> waits_;
  std::vector<std::int32_t> stream_of_;
  std::size_t streams_ = 0;
};

class JobGraph {
 public:
  /// Stands for a rank alone, whose graph must outlive this.
  JobGraph(const Graph& rank) : rank_(&rank) {}
  /// Stands for several ranks, whose graphs must outlive this; `advised` is one of them.
  JobGraph(std::shared_ptr<const JointGraph> ranks, std::size_t advised);

  const Graph& graph() const { return ranks_ ? ranks_->graph() : *rank_; }
  /// The graph of the rank alone, or of the advised one of several.
  const Graph& advised() const { return *rank_; }
  /// Returns kNoTask for tasks of other ranks.
  TaskId of_advised(TaskId task) const;

  std::size_t rank_count() const { return ranks_ ? ranks_->rank_count() : 1; }
  const Graph& recorded(std::size_t rank) const {
    return ranks_ ? *ranks_->rank(rank).graph : *rank_;
  }
  /// When a rank begins on the clock of the whole graph.
  Nanoseconds begins(std::size_t rank) const { return ranks_ ? ranks_->rank(rank).begins : 0ns; }
  /// The task of graph() that is `task` of a rank, and the one whose start is its start.
  TaskId task(std::size_t rank, TaskId task) const {
    return ranks_ ? ranks_->task(rank, task) : task;
  }
  TaskId start_of(std::size_t rank, TaskId task) const {
    return ranks_ ? ranks_->start_of(rank, task) : task;
  }

  /// One rank in a replay, with its own tasks and clock.
  struct RankReplay {
    const Graph& graph;
    const Timeline& timeline;
    std::uint32_t first_lane = 0, end_lane = 0;  ///< Its lanes in graph().
  };
  /// Calls `visit` for a rank. `edited` is graph() or a clone with other times, and `replayed` is
  /// its replay.
  void visit_rank(std::size_t rank, const Graph& edited, const Timeline& replayed,
                  const std::function<void(const RankReplay&)>& visit) const;

  /// The step of the slowest rank. Its path, which is found if `replayed` has reasons, leads
  /// through others that it waits for.
  struct Step {
    Nanoseconds time{0};
    PathShares path;
  };
  Step step(const Graph& edited, const Timeline& replayed) const;

 private:
  JobProbes::Slowest slowest(const Graph& edited, const Timeline& replayed) const;

  const Graph* rank_;
  std::shared_ptr<const JointGraph> ranks_;
  std::size_t advised_ = 0;
  std::shared_ptr<const JobProbes> probes_;  ///< Only of several ranks, all on FIFO lanes.
};

}  // namespace foretrace
