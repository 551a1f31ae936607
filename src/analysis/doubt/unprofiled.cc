#include "analysis/doubt/unprofiled.h"

#include "graph/recorder_time.h"
#include "job/job_graph.h"
#include "job/retimed_replay.h"

namespace foretrace {

Nanoseconds unprofiled_step_time(const Graph& graph) {
  const Nanoseconds per_record = graph.unexplained().per_record;
  if (per_record <= 0ns || !all_lanes_fifo(graph)) return 0ns;
  return RetimedReplay(graph).step_time(
      {.durations = without_recorder(graph, per_record), .gaps = {}, .lags = {}});
}

}  // namespace foretrace
