#include <algorithm>

#include "foretrace/error.h"
#include "foretrace/timeline.h"

namespace foretrace {

std::vector<TaskId> critical_path(const Graph& graph, const Timeline& timeline) {
  if (graph.task_count() == 0) return {};
  CHECK(timeline.reasons.size() == graph.task_count());
  const auto last = std::max_element(timeline.finish.begin(), timeline.finish.end());
  return path_to(timeline, TaskId{static_cast<std::uint32_t>(last - timeline.finish.begin())});
}

std::vector<TaskId> path_to(const Timeline& timeline, TaskId last) {
  std::vector<TaskId> path;
  for (TaskId task = last; task != kNoTask && path.size() < timeline.reasons.size();
       task = timeline.reasons[index(task)].before) {
    path.push_back(task);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace foretrace
