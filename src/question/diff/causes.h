#pragma once

// Sorts the differences of a union graph into groups that a reader can act on: by kind of work, op
// or call, and source line. Group 0 contains everything else.

#include <cstdint>
#include <vector>

#include "analysis/match/union.h"
#include "foretrace/answer/diff.h"

namespace foretrace {

/// One side of a comparison, with all that labels of groups need.
struct CauseSide {
  const Graph& graph;
  const CallSites* sites;                 ///< May be null.
  const std::vector<std::int32_t>& step;  ///< The step of each task, numbered alike on both sides.
};

struct CauseScope {
  std::int32_t step = -1;              ///< First step that is counted; -1: all tasks are.
  std::int32_t count = 1;              ///< Number of steps that are counted.
  std::int32_t first = -1, last = -1;  ///< Range of steps that both sides have.
  std::size_t most = 32;               ///< Number of groups that are kept apart.
};

/// Puts the tasks and waits of `graph` into groups and describes these; effects stay 0. Small
/// groups of one kind are joined.
std::vector<DiffCause> find_causes(UnionGraph& graph, const CauseSide& before,
                                   const CauseSide& after, const CauseScope& scope);

}  // namespace foretrace
