#pragma once

#include <string>
#include <string_view>

#include "foretrace/graph.h"

namespace foretrace {

/// The first task with this name, or kNoTask.
inline TaskId named(const Graph& graph, std::string_view name) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.name(TaskId{i}) == name) return TaskId{i};
  }
  return kNoTask;
}

/// The names of the tasks on a lane, in order.
inline std::string line(const Graph& graph, LaneId lane) {
  std::string text;
  for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
    text += (text.empty() ? "" : " ") + std::string(graph.name(task));
  }
  return text;
}

/// The names of the tasks that wait for a task, and of the tasks that it waits for.
inline std::string dependents(const Graph& graph, std::string_view task) {
  std::string text;
  graph.each_dependent(named(graph, task), [&](const Dependency& wait) {
    text += (text.empty() ? "" : " ") + std::string(graph.name(wait.after));
  });
  return text;
}
inline std::string waits(const Graph& graph, std::string_view task) {
  std::string text;
  graph.each_wait(named(graph, task), [&](const Dependency& wait) {
    text += (text.empty() ? "" : " ") + std::string(graph.name(wait.before));
  });
  return text;
}

}  // namespace foretrace
