#pragma once

// A timeline as a trace: what a profiler would have recorded, had the tasks run at these times. It
// is the inverse of infer.h, so that a prediction opens in trace viewers and can be read back like
// a recording. Causes are recorded as a profiler records them: correlation ids of launches,
// synchronization records of waits, and waiting calls that last as long as they wait.

#include <cstdint>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

/// `recorded` is the trace that the graph was inferred from; it distinguishes ops from annotations
/// and frames, which all become ops without it. `record_of` receives, by task, its index into
/// Trace::devices, or kNone. Linear, except for sorting.
Trace render(const Graph& graph, const Timeline& timeline, const Trace* recorded = nullptr,
             std::vector<std::uint32_t>* record_of = nullptr);

/// One rank of a job, on its own clock.
struct RankTimeline {
  const Graph* graph = nullptr;
  const Timeline* timeline = nullptr;
  const Trace* recorded = nullptr;
  std::int32_t rank = 0;
  Nanoseconds begins{0};  ///< Its time 0 on the common clock of all ranks.
};
struct RankTask {
  std::size_t rank = 0;  ///< Into the rendered ranks.
  TaskId task = kNoTask;
};
struct RenderedRanks {
  Trace trace;
  RankView view;
};
/// Renders all ranks into one trace for viewers, which infer() refuses. `collectives` has the
/// members of each collective. Throws Error if there are too many ranks.
RenderedRanks render_ranks(const std::vector<RankTimeline>& ranks,
                           const std::vector<std::vector<RankTask>>& collectives);

}  // namespace foretrace
