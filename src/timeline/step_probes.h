#pragma once

// The few tasks whose times determine step_times() of a graph, whatever its durations become: a
// caller that replays one structure with many sets of durations needs only their times.
//
//     cpu     |LLLL|LLLL|     a step begins with what was launched first, and on a FIFO lane that
//     stream  |AAAA|BBBB|     is the first launch in line: two candidates here, not eight
//
// Any of several lanes may have the first task, so each lane has a candidate of its own, and the
// times decide between them. Which stream has more work than fits between the marks (see StepTimes)
// depends on sums of durations, which are provided together with the times.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "timeline/step_distances.h"

namespace foretrace {

/// The times of one replay.
struct ProbedTimes {
  std::span<const Nanoseconds> starts, finishes;  ///< Times of StepProbes::tasks(), in that order.
  std::span<const Nanoseconds> work;              ///< Work of each stream; see StepProbes::work().
  Nanoseconds length{0};                          ///< The greatest finish of all tasks.
};

class StepProbes {
 public:
  static constexpr std::int32_t kNoStream = -1;

  /// Throws Error unless all tasks are on FIFO lanes. Takes linear time, except for sorting.
  explicit StepProbes(const Graph& graph);

  /// The tasks whose times are needed, each once.
  std::span<const TaskId> tasks() const { return tasks_; }

  /// Number of sums of durations that are needed; 0 if there are too few steps for one to matter.
  std::size_t stream_count() const { return streams_.size(); }
  /// By task: the stream to whose sum its duration belongs, or kNoStream.
  std::span<const std::int32_t> stream_of() const { return stream_of_; }
  /// Computes the sums from the durations of a graph of this structure.
  std::vector<Nanoseconds> work(const Graph& graph) const;

  /// Equals step_times() of the timeline with these times.
  StepTimes step_times(const ProbedTimes& times) const;

 private:
  friend class ProbeFinder;  // Fills it, in step_probes.cc.

  /// A task that could begin a step. It does if `launch` (the task itself, if nothing launched it)
  /// starts first; ties go to the least id.
  struct Candidate {
    std::uint32_t launch = 0;  ///< Index into tasks_.
    std::uint32_t task = 0;    ///< Index into tasks_.
  };
  using Candidates = std::vector<Candidate>;
  /// The candidates of a step that has tasks; `list` is an index into lists_.
  struct Start {
    std::int32_t step = 0;
    std::uint32_t list = 0;
  };
  /// Decides where one of few steps begins; see begin_of_step().
  struct Begin {
    std::vector<std::uint32_t> host;     ///< First tasks of the launching threads, into tasks_.
    std::vector<std::uint32_t> backlog;  ///< Device work in front of the step, into tasks_.
    std::vector<std::uint32_t> pinned;   ///< Work that begins behind an unrecorded backlog.
  };
  struct Starts {
    std::vector<Start> steps;
    // Filled if the last step counts:
    std::vector<Begin> begins;  ///< By step in `steps`; empty if the host marks steps.
    // The tasks that can end the last step, on the device (or host) that marks it, and on the
    // threads that launch it; indices into tasks_.
    std::vector<std::uint32_t> work, host;
    /// Tasks of these threads in front of one that waits for the device, and that one.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> waits;
  };
  struct Stream {
    LaneId lane = kNoLane;
    Starts starts;          ///< The starts if only tasks of this stream count.
    std::size_t steps = 0;  ///< Number of steps in which it has work.
  };

  std::vector<Nanoseconds> mark_times(const Starts& starts, const ProbedTimes& times) const;
  /// Returns the starts whose marks are the steps, given those of all streams together.
  const Starts& decisive_starts(const std::vector<Nanoseconds>& marks,
                                const ProbedTimes& times) const;
  LastStep last_step(const Starts& starts, const ProbedTimes& times,
                     const std::vector<Nanoseconds>& marks) const;

  std::vector<TaskId> tasks_;
  std::vector<Candidates> lists_;
  Starts starts_;
  std::vector<Stream> streams_;
  std::vector<std::int32_t> stream_of_;
  StepRule rule_;
};

}  // namespace foretrace
