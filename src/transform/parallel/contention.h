#pragma once

// Kernels and collectives that run at the same time slow each other down: they share memory
// bandwidth and multiprocessors.

#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

struct ContentionShares {
  /// A kernel takes this share longer while a collective runs beside it, and the reverse. Where the
  /// defaults come from: contention.cc.
  double kernels = 0.13, collectives = 0.3;
};

struct Contention {
  Nanoseconds kernels{0}, collectives{0};  ///< Time added to all of them.
  std::size_t changed = 0;
  int rounds = 0;
  double residual = 0;  ///< By how much the whole still changed in the last round, as a share.
};

/// Lengthens the tasks in `added`, which are collectives, and the kernels beside them, by how long
/// they overlap. As that decides when they run, it replays and tries again: at most four times,
/// and no more once the whole changes by less than 0.1 %. Recorded collectives are left out, as
/// durations beside them were recorded with them.
Contention contend(Graph& graph, const std::vector<TaskId>& added, const ContentionShares& shares);

}  // namespace foretrace
