#pragma once

// From what happened to what must happen: finds for each record the task it stands for, what is
// work in it and what is waiting, and on whom it waits. One file per kind of wait.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Time that the recording does not explain: in front of `task`, where the graph keeps it as a lag,
/// or in the duration of a collective that waits for other ranks. Graph::unexplained() has the
/// sums.
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
      assumptions;                  ///< What the graph rests on beyond records, one sentence each.
  std::vector<OpenTime> open = {};  ///< Task by task.
};

/// Throws TraceError for a trace with nothing that takes time.
Inference infer(const Trace& trace);

/// How long the steps took that infer() finds; nothing for a trace that tells no times, or that
/// infer() refuses.
std::optional<StepTimes> recorded_steps(const Trace& trace);

/// Whether it tells what an allocator did and nothing of what ran: no step time comes of it.
bool is_snapshot(const Trace& trace);

}  // namespace foretrace
