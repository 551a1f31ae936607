#pragma once

// Kernels and collectives that run at the same time slow each other down: they share memory
// bandwidth and multiprocessors.

#include "foretrace/graph.h"

namespace foretrace {

struct ContentionShares {
  /// A kernel takes this share longer while a collective runs beside it, and a collective while
  /// kernels run. contention.cc has the sources of the defaults.
  double kernels = 0.13, collectives = 0.3;
};

struct Contention {
  Nanoseconds kernels{0}, collectives{0};  ///< Total time added to them.
  std::size_t changed = 0;
  int rounds = 0;
  double residual = 0;  ///< Relative change of the run's length in the last round.
};

/// Lengthens the collectives that transforms have added, and the kernels beside them, in proportion
/// to their overlap. Because durations change the overlap, it replays and repeats this: at most
/// four times, and only until the length of the run changes by less than 0.1 %. Recorded
/// collectives are left out, because recorded durations already include contention with them. What
/// an earlier call added is taken back first.
Contention contend(Graph& graph, const ContentionShares& shares);

/// Take back what contend() has added, and add it again with the same shares if that was done:
/// around each transform, which changes what overlaps.
void release_contention(Graph& graph);
void restore_contention(Graph& graph);

}  // namespace foretrace
