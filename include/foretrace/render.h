#pragma once

// A timeline as a trace: what a profiler would have recorded, had the tasks run at these times. It
// is the inverse of infer.h, so that a prediction opens in the viewers of traces and is read back
// as any recording is. Causes are told as a profiler tells them: correlation ids of launches,
// synchronization records of waits, and calls that wait drawn for as long as they wait.

#include <cstdint>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

/// `recorded` is the trace that the graph was inferred from. It tells ops from annotations and
/// frames, which are all ops without it. `record_of`: by task, its record among Trace::devices, or
/// kNone. Linear but for sorting.
Trace render(const Graph& graph, const Timeline& timeline, const Trace* recorded = nullptr,
             std::vector<std::uint32_t>* record_of = nullptr);

/// One rank of a job, on its own clock.
struct RankTimeline {
  const Graph* graph = nullptr;
  const Timeline* timeline = nullptr;
  const Trace* recorded = nullptr;
  std::int32_t rank = 0;
  Nanoseconds begins{0};  ///< On the clock of all.
};
struct RankTask {
  std::size_t rank = 0;  ///< Into the ranks that are rendered.
  TaskId task = kNoTask;
};
struct RenderedRanks {
  Trace trace;
  RankView view;
};
/// All ranks as one trace, for viewers; infer() refuses it. `meetings` have the members of each
/// collective. Throws Error where there are too many ranks.
RenderedRanks render_ranks(const std::vector<RankTimeline>& ranks,
                           const std::vector<std::vector<RankTask>>& meetings);

}  // namespace foretrace
