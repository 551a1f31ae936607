#pragma once

// From what happened to what must happen: finds for each record its task, the part of it that is
// work and the part that is waiting, and what it waits for. One file per kind of wait.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Time that the recording does not explain: before `task`, where the graph keeps it as a lag, or
/// in the duration of a collective that waits for other ranks. Graph::unexplained() has the sums.
struct OpenTime {
  TaskId task = kNoTask;
  Nanoseconds time{0};
  bool of_peers = false;
};

struct Inference {
  Graph graph;
  Timeline recorded;  ///< When each task really ran. Same ids as the graph.
  Notes notes;
  std::vector<std::string>
      assumptions;  ///< Assumptions of the graph beyond the records, one sentence each.
  std::vector<OpenTime> open = {};  ///< Task by task.
};

/// Throws TraceError for a trace with nothing that takes time.
Inference infer(const Trace& trace);

/// The recorded times of the steps that infer() finds; empty for a trace without times, or one that
/// infer() refuses.
std::optional<StepTimes> recorded_steps(const Trace& trace);

}  // namespace foretrace
