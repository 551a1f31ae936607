#pragma once

// The time that a member of a meeting takes, without its wait for the others.

#include "base/numbers/scaling.h"
#include "foretrace/graph.h"
#include "graph/meeting.h"

namespace foretrace {

/// The duration of a task of a meeting without the wait for others: what a transform did to the
/// whole it did to both parts.
inline Nanoseconds transfer_of(const MeetingMember& member, Nanoseconds duration) {
  if (member.recorded <= 0ns || duration == member.recorded) return duration - member.skew;
  const double part =
      static_cast<double>(member.skew.count()) / static_cast<double>(member.recorded.count());
  return duration - scaled(duration, part);
}

/// The overlap with a task that gets shorter stays as long as it was, or becomes all of it.
inline Overlap shortened(const Overlap& overlap, Nanoseconds before, Nanoseconds after) {
  Overlap found = overlap_of(overlap.tail.of(before), after);
  found.lag += overlap.lag;
  return found;
}

/// Calls `visit` with the members that take part in the graphs of their ranks. `graph_of(rank)` is
/// the graph of a rank. Visits none where no member waits for the others.
template <class GraphOf, class Visit>
void each_member(const Meeting& meeting, const GraphOf& graph_of, const Visit& visit) {
  const auto takes_part = [&](const MeetingMember& one) {
    return !graph_of(one.rank).removed(one.task);
  };
  bool any_waits = false;
  for (const MeetingMember& one : meeting.members) any_waits |= !one.left_early && takes_part(one);
  for (const MeetingMember& one : meeting.members) {
    if (any_waits && takes_part(one)) visit(one);
  }
}

}  // namespace foretrace
