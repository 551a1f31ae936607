#include "transform/edit/greatest_awaited.h"

#include <algorithm>

namespace foretrace {

std::vector<std::size_t> greatest_awaited(const Graph& graph, std::vector<std::size_t> numbers) {
  for (const TaskId task : in_order_of_waits(graph)) {
    const auto waits_for = [&](TaskId before) {
      numbers[index(task)] = std::max(numbers[index(task)], numbers[index(before)]);
    };
    const bool in_line = graph.lane(graph.lane_of(task)).discipline == Discipline::fifo;
    if (in_line && graph.previous(task) != kNoTask) waits_for(graph.previous(task));
    graph.each_wait(task, [&](const Dependency& wait) { waits_for(wait.before); });
  }
  return numbers;
}

}  // namespace foretrace
