#pragma once

// Replays one graph, of a rank or of a whole job, with other durations, gaps and lags. Compiling a
// graph costs several times as much as replaying it, so many such questions about one structure
// share a compiled graph.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/simulate.h"
#include "job/job_graph.h"

namespace foretrace {

/// Other times for some tasks and waits of a graph; tails stay as they are.
struct Retiming {
  std::vector<std::pair<TaskId, Nanoseconds>> durations, gaps;
  /// Keyed by the number of the dependency in each_dependency(), in ascending order.
  std::vector<std::pair<std::size_t, Nanoseconds>> lags;
};

/// Writes the new times into `graph`.
void retime(Graph& graph, const Retiming& retiming);

/// A compiled graph that answers many retimings. Not safe for concurrent use; clones share the
/// parts that do not change.
class RetimedReplay {
 public:
  /// REQUIRES: all lanes of the graph are FIFO. Costs a little more than a replay.
  explicit RetimedReplay(const JobGraph& job);
  RetimedReplay clone() const { return RetimedReplay(compiled_.clone(), graph_); }

  /// The step time of the job after retime(), to the nanosecond. Linear, at the speed of memory.
  Nanoseconds step_time(const Retiming& retiming);

 private:
  struct Recorded {
    JobProbes probes;
    std::vector<Nanoseconds> work;  ///< See JobProbes::work().
    Compiled::LagIndices places;
    std::vector<Nanoseconds> durations;  ///< In compiled order, as are the lags.
    std::vector<std::int64_t> lags;
  };

  RetimedReplay(Compiled compiled, std::shared_ptr<const Recorded> graph)
      : compiled_(std::move(compiled)), graph_(std::move(graph)) {}

  template <class LagAt>
  void set_lags(const Retiming& retiming, const LagAt& lag_at);
  void apply(const Retiming& retiming, std::vector<Nanoseconds>& work);
  void undo(const Retiming& retiming);

  Compiled compiled_;
  std::shared_ptr<const Recorded> graph_;
};

/// The step time without the recorder's own work on the host; 0 if the recording does not show how
/// much that is. Costs a little more than a replay.
Nanoseconds unprofiled_step_time(const Graph& graph);

}  // namespace foretrace
