#pragma once

// The waits of a graph, read by both forms of the replay: places in line and dependencies alike.

#include <cstdint>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// `after` starts no earlier than `lag` past the finish of `before` less the tail, or past its
/// start if `from_start`.
struct Wait {
  std::uint32_t before;
  std::uint32_t after;
  std::int64_t lag;
  TailShare tail;
  bool from_start;
};

/// By LaneId: whether each task waits for its predecessor (a FIFO lane).
inline std::vector<char> lanes_in_line(const Graph& graph) {
  std::vector<char> in_line(graph.lane_count());
  for (std::uint32_t i = 0; i < in_line.size(); ++i) {
    in_line[i] = graph.lane(LaneId{i}).discipline == Discipline::fifo;
  }
  return in_line;
}

/// Returns the first shared or priority lane that has tasks, or kNoLane.
inline LaneId lane_not_in_line(const Graph& graph) {
  const std::vector<char> in_line = lanes_in_line(graph);
  for (std::uint32_t i = 0; i < in_line.size(); ++i) {
    if (!in_line[i] && graph.first(LaneId{i}) != kNoTask) return LaneId{i};
  }
  return kNoLane;
}

/// Calls `visit` with the wait of each task for its predecessor on a FIFO lane, in order of tasks.
/// Takes linear time.
template <class Visit>
void each_wait_in_line(const Graph& graph, const Visit& visit) {
  const std::vector<char> in_line = lanes_in_line(graph);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId front = graph.previous(TaskId{i});
    if (front == kNoTask || !in_line[index(graph.lane_of(TaskId{i}))]) continue;
    const Task& task = graph.task(TaskId{i});
    visit(Wait{index(front), i, task.gap.count(), task.tail, false});
  }
}

/// Converts a dependency to a wait. A task on a shared or priority lane has no tail, because its
/// finish is not known in advance.
inline Wait wait_of(const Graph& graph, const std::vector<char>& in_line,
                    const Dependency& dependency) {
  Wait wait{index(dependency.before), index(dependency.after), dependency.lag.count(),
            dependency.tail, dependency.anchor == Anchor::start};
  const bool has_tail = !wait.from_start && in_line[index(graph.lane_of(dependency.before))];
  if (!has_tail) wait.tail = {};
  return wait;
}

/// Calls `visit` with the waits in line, and then with those of all dependencies, in their order.
template <class Visit>
void each_wait(const Graph& graph, const Visit& visit) {
  each_wait_in_line(graph, visit);
  const std::vector<char> in_line = lanes_in_line(graph);
  graph.each_dependency([&](const Dependency& wait) { visit(wait_of(graph, in_line, wait)); });
}

}  // namespace foretrace
