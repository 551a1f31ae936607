#pragma once

// The time that a member of a collective takes without its wait for the others.

#include "base/numbers/scaling.h"
#include "foretrace/graph.h"
#include "graph/matched_collective.h"

namespace foretrace {

/// The duration of a collective's task without the wait for others. If a transform changed the
/// duration, wait and transfer are scaled alike.
inline Nanoseconds transfer_of(const CollectiveMember& member, Nanoseconds duration) {
  if (member.recorded <= 0ns || duration == member.recorded) return duration - member.skew;
  const double part =
      static_cast<double>(member.skew.count()) / static_cast<double>(member.recorded.count());
  return duration - scaled(duration, part);
}

/// Adapts an overlap to a task that gets shorter: it keeps its length, or becomes the whole task if
/// that is shorter.
inline Overlap shortened(const Overlap& overlap, Nanoseconds before, Nanoseconds after) {
  Overlap found = overlap_of(overlap.tail.of(before), after);
  found.lag += overlap.lag;
  return found;
}

/// Calls `visit` with each member whose task is not removed; with none if all of these left early.
/// `graph_of(rank)` returns the graph of a rank.
template <class GraphOf, class Visit>
void each_member(const MatchedCollective& collective, const GraphOf& graph_of, const Visit& visit) {
  const auto takes_part = [&](const CollectiveMember& member) {
    return !graph_of(member.rank).removed(member.task);
  };
  bool any_waits = false;
  for (const CollectiveMember& member : collective.members)
    any_waits |= !member.left_early && takes_part(member);
  for (const CollectiveMember& member : collective.members) {
    if (any_waits && takes_part(member)) visit(member);
  }
}

}  // namespace foretrace
