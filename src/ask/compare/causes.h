#pragma once

// Sorts the differences of a union graph into groups that a reader can act on: by kind of work, op
// or call, and source line. Group 0 contains everything else.

#include <cstdint>
#include <vector>

#include "ask/compare/union.h"
#include "foretrace/answer/diff.h"

namespace foretrace {

/// One side of a comparison as its groups are named.
struct CauseSide {
  const Graph& graph;
  const CallSites* sites;                 ///< May be null.
  const std::vector<std::int32_t>& step;  ///< The step of each task, numbered alike on both sides.
};

struct CauseScope {
  std::int32_t step = -1;              ///< The first that is counted; -1: all tasks are.
  std::int32_t count = 1;              ///< Steps that are.
  std::int32_t first = -1, last = -1;  ///< Steps that both sides have.
  std::size_t most = 32;               ///< Groups.
};

/// Puts the tasks and waits of `graph` into groups and describes these; effects are left at 0.
/// Smaller groups of a kind count together.
std::vector<DiffCause> find_causes(UnionGraph& graph, const CauseSide& before,
                                   const CauseSide& after, const CauseScope& scope);

}  // namespace foretrace
