#pragma once

// From what happened to what must happen: finds for each record its task, the part of it that is
// work and the part that is waiting, and what it waits for. One file per kind of wait.

#include <optional>
#include <string>
#include <string_view>
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

/// The rank that was recorded, and where its time 0 lies on the clock of the recording.
struct RecordedRank {
  std::int32_t number = 0, world_size = 1;
  Nanoseconds origin{0};
};

struct Inference {
  Graph graph;
  Timeline recorded;  ///< When each task really ran. Same ids as the graph.
  Notes notes;
  std::vector<std::string> assumptions;  ///< Beyond what records say, one sentence each.
  std::vector<OpenTime> open = {};       ///< Task by task.
  RecordedRank rank = {};
};

/// The assumption of infer() about a rank whose peers are not recorded.
inline constexpr std::string_view kCollectivesKeepTime =
    "Collectives keep their recorded time, including the time spent waiting for other ranks.";

struct InferOptions {
  /// Finds which task makes, uses and frees each block of memory. Costs a fifth of the time, and
  /// times do not depend on it.
  bool memory = true;
};

/// Throws TraceError if nothing in the trace takes time.
Inference infer(const Trace& trace, const InferOptions& options = {});

}  // namespace foretrace
