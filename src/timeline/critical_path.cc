#include <algorithm>

#include "foretrace/error.h"
#include "foretrace/timeline.h"

namespace foretrace {

std::vector<TaskId> critical_path(const Graph& graph, const Timeline& timeline) {
  if (graph.task_count() == 0) return {};
  CHECK(timeline.reasons.size() == graph.task_count());
  const auto last = std::max_element(timeline.finish.begin(), timeline.finish.end());
  std::vector<TaskId> path;
  TaskId task{static_cast<std::uint32_t>(last - timeline.finish.begin())};
  while (task != kNoTask && path.size() < graph.task_count()) {
    path.push_back(task);
    task = timeline.reasons[index(task)].before;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace foretrace
