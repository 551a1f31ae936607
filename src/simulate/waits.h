#pragma once

// Both forms of the replay read here what tasks wait for: their place in line and dependencies
// alike.

#include <cstdint>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// `after` starts no earlier than `lag` past the finish of `before` less its tail, or past its
/// start.
struct Wait {
  std::uint32_t before;
  std::uint32_t after;
  std::int64_t lag;
  Tail tail;
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

/// Calls `visit` with the waits of all places in line, by task. Linear.
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

/// The wait of a dependency. Behind a task on a shared or priority lane there is no tail: when such
/// a task finishes is known only when it does.
inline Wait wait_of(const Graph& graph, const std::vector<char>& in_line,
                    const Dependency& dependency) {
  Wait wait{index(dependency.before), index(dependency.after), dependency.lag.count(),
            dependency.tail, dependency.anchor == Anchor::start};
  const bool has_tail = !wait.from_start && in_line[index(graph.lane_of(dependency.before))];
  if (!has_tail) wait.tail = {};
  return wait;
}

/// ... and then with those of all dependencies, in their order.
template <class Visit>
void each_wait(const Graph& graph, const Visit& visit) {
  each_wait_in_line(graph, visit);
  const std::vector<char> in_line = lanes_in_line(graph);
  graph.each_dependency([&](const Dependency& wait) { visit(wait_of(graph, in_line, wait)); });
}

}  // namespace foretrace
