#pragma once

// What tasks wait for, places in line and dependencies alike, as both forms of the replay read it.

#include <cstdint>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// `after` starts no earlier than `lag` past the finish of `before`, or past its start.
struct Wait {
  std::uint32_t before;
  std::uint32_t after;
  std::int64_t lag;
  bool from_start;
};

/// Whether tasks wait for the one in front, by LaneId.
inline std::vector<char> lanes_in_line(const Graph& graph) {
  std::vector<char> in_line(graph.lane_count());
  for (std::uint32_t i = 0; i < in_line.size(); ++i) {
    in_line[i] = graph.lane(LaneId{i}).discipline == Discipline::fifo;
  }
  return in_line;
}

/// A shared or priority lane that has tasks, or kNoLane.
inline LaneId lane_not_in_line(const Graph& graph) {
  const std::vector<char> in_line = lanes_in_line(graph);
  for (std::uint32_t i = 0; i < in_line.size(); ++i) {
    if (!in_line[i] && graph.first(LaneId{i}) != kNoTask) return LaneId{i};
  }
  return kNoLane;
}

/// Calls `visit` with the wait and, where a negative lag lets it overlap the tail of the task in
/// front, with the one that keeps it from starting before that task does.
template <class Visit>
void visit_wait(const Wait& wait, const Visit& visit) {
  visit(wait);
  if (wait.lag < 0) visit(Wait{wait.before, wait.after, 0, true});
}

/// Calls `visit` with the waits of all places in line, by task. Linear.
template <class Visit>
void each_wait_in_line(const Graph& graph, const Visit& visit) {
  const std::vector<char> in_line = lanes_in_line(graph);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId front = graph.previous(TaskId{i});
    if (front == kNoTask || !in_line[index(graph.lane_of(TaskId{i}))]) continue;
    visit_wait(Wait{index(front), i, graph.task(TaskId{i}).gap.count(), false}, visit);
  }
}

/// The same of a dependency. Behind a task on a shared or priority lane a negative lag counts as 0:
/// when such a task finishes is known only when it does.
template <class Visit>
void visit_dependency(const Graph& graph, const std::vector<char>& in_line,
                      const Dependency& dependency, const Visit& visit) {
  Wait wait{index(dependency.before), index(dependency.after), dependency.lag.count(),
            dependency.anchor == Anchor::start};
  if (wait.lag < 0 && !graph.removed(dependency.before) &&
      !in_line[index(graph.lane_of(dependency.before))]) {
    wait.lag = 0;
  }
  visit_wait(wait, visit);
}

/// ... and then with those of all dependencies, in their order.
template <class Visit>
void each_wait(const Graph& graph, const Visit& visit) {
  each_wait_in_line(graph, visit);
  const std::vector<char> in_line = lanes_in_line(graph);
  graph.each_dependency(
      [&](const Dependency& wait) { visit_dependency(graph, in_line, wait, visit); });
}

}  // namespace foretrace
