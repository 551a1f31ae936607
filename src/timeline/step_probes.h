#pragma once

// The few tasks whose times decide step_times() of a graph, whatever its durations become: a caller
// that replays one structure with many sets of durations only needs the times of these.
//
//     cpu     |LLLL|LLLL|     a step begins with what was launched first, and on a FIFO lane that
//     stream  |AAAA|BBBB|     is the first launch in line: two candidates here, not eight
//
// The first task may be on any of several lanes, so each lane has a candidate of its own, and the
// times decide between them. Which stream has more work than fits between the marks (see StepTimes)
// depends on sums of durations, which are provided together with the times.

#include <cstdint>
#include <span>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// Times of one replay.
struct ProbedTimes {
  std::span<const Nanoseconds> starts, finishes;  ///< Times of StepProbes::tasks(), in that order.
  std::span<const Nanoseconds> work;              ///< Work of each stream; see StepProbes::work().
  Nanoseconds length{0};                          ///< The greatest finish.
};

class StepProbes {
 public:
  static constexpr std::int32_t kNoStream = -1;

  /// For graphs with all tasks on FIFO lanes; throws Error for others. Linear, except for sorting.
  explicit StepProbes(const Graph& graph);

  /// The tasks whose times are needed, each once.
  std::span<const TaskId> tasks() const { return tasks_; }

  /// How many sums of durations are wanted; 0 where steps are too few for one to matter.
  std::size_t stream_count() const { return streams_.size(); }
  /// By task: the stream whose sum its duration counts in, or kNoStream.
  std::span<const std::int32_t> stream_of() const { return stream_of_; }
  /// The sums for durations as they are in a graph of this structure.
  std::vector<Nanoseconds> work(const Graph& graph) const;

  /// Equals step_times() of the timeline that the times are of.
  StepTimes step_times(const ProbedTimes& times) const;

 private:
  friend class ProbeFinder;  // Fills it, in step_probes.cc.

  /// A task that could begin a step: it does if `launch` (itself, if nothing launched it) starts
  /// first, or has the least id of those that start together.
  struct Candidate {
    std::uint32_t launch = 0;  ///< Into tasks_.
    std::uint32_t task = 0;    ///< Into tasks_.
  };
  using Candidates = std::vector<Candidate>;
  /// Where each step begins: steps that have tasks, into lists_.
  struct Start {
    std::int32_t step = 0;
    std::uint32_t list = 0;
  };
  /// From the first start to the last finish of a thread's tasks in a step; into tasks_.
  struct Thread {
    std::uint32_t first = 0;
    std::vector<std::uint32_t> last;
  };
  struct Starts {
    std::vector<Start> steps;
    // If the last step counts, what can end it:
    std::vector<std::uint32_t> work;  ///< Into tasks_.
    std::vector<Thread> threads;
  };
  struct Stream {
    LaneId lane = kNoLane;
    Starts starts;  ///< If only its tasks count.
  };

  std::vector<Nanoseconds> marked(const Starts& starts, const ProbedTimes& times) const;
  /// Returns how long the last step takes, which begins at `mark`.
  Nanoseconds last_length(const Starts& starts, const ProbedTimes& times, Nanoseconds mark) const;

  std::vector<TaskId> tasks_;
  std::vector<Candidates> lists_;
  Starts starts_;
  std::vector<Stream> streams_;
  std::vector<std::int32_t> stream_of_;
  StepRule rule_;
};

}  // namespace foretrace
