#pragma once

// The replay: from what must happen to when it happens. A task starts when the previous task on its
// lane and everything it depends on allow it. FIFO lanes need no clock: tasks are taken in
// topological order. Shared and priority lanes bring an event queue in order of (time, id). Same
// graph, same bytes out.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct SimulateOptions {
  bool reasons = false;
  bool memory = true;
};

/// Throws Error naming the tasks and dependencies of a shortest cycle, with their provenance, if
/// there is one.
Timeline simulate(const Graph& graph, const SimulateOptions& options = {});

/// The step time of a replay, for callers that need nothing else of it.
Nanoseconds replayed_step_time(const Graph& graph);

/// A graph frozen for many replays: renumbered in topological order, compressed sparse rows, at
/// most 64 bytes a task. Throws Error if a lane is not FIFO.
class Compiled {
 public:
  explicit Compiled(const Graph& graph);
  Compiled clone() const;
  Compiled(Compiled&&) noexcept;
  Compiled& operator=(Compiled&&) noexcept;
  ~Compiled();

  std::size_t task_count() const;
  std::size_t bytes() const;
  /// Position of each task of the graph in the compiled order.
  std::span<const std::uint32_t> order() const;
  /// Durations in compiled order, as in the graph when compiled; may be changed between replays.
  std::span<Nanoseconds> durations();
  std::span<const Nanoseconds> durations() const;
  /// Lags of all waits in ns, as in the graph when compiled; the lag behind the task in front on a
  /// lane is the gap. May be changed between replays. Empty if none of them matters.
  std::span<std::int64_t> lags();

  struct LagIndices {
    static constexpr std::uint32_t kNone = 0xffffffff;  ///< If no task is in front on the lane.
    std::vector<std::uint32_t> of_gap;                  ///< By task, into lags().
    std::vector<std::uint32_t> of_dependency;           ///< In the order of each_dependency().
  };
  /// Where lags() has the lags of `graph`. REQUIRES: it is the graph that was compiled. Linear.
  LagIndices lag_indices(const Graph& graph) const;

  /// Returns the greatest finish. finish(), in compiled order, is valid until the next replay.
  Nanoseconds replay();
  std::span<const Nanoseconds> finish() const;

  /// The results of replay_all(), set by set.
  struct Replays {
    std::vector<Nanoseconds> lengths;  ///< The greatest finish.
    /// Times of the probes in the order given: all of the first set, all of the second ...
    std::vector<Nanoseconds> starts, finishes;
  };
  /// Replays once for each set (of task_count() durations in compiled order), eight sets in one
  /// pass. `probes` are tasks of the graph whose times are wanted.
  Replays replay_all(std::span<const std::span<const Nanoseconds>> sets,
                     std::span<const TaskId> probes = {}) const;

 private:
  struct Impl;
  explicit Compiled(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
