#include <algorithm>
#include <vector>

#include "foretrace/graph.h"
#include "graph/storage.h"

namespace foretrace {
namespace {

/// Looks for the shortest way from a task back to itself among the tasks that are part of a circle.
class CircleSearch {
 public:
  explicit CircleSearch(const Graph& graph)
      : graph_(graph), reached_by_(graph.task_count()), seen_(graph.task_count(), 0) {}

  /// The shortest circle through `start` with fewer than `limit` waits, or nothing.
  std::vector<Dependency> through(TaskId start, std::size_t limit) {
    ++round_;
    std::vector<TaskId> level = {start};
    for (std::size_t length = 1; length < limit && !level.empty(); ++length) {
      std::vector<TaskId> next_level;
      for (const TaskId task : level) {
        bool back = false;
        each_step(task, [&](const Dependency& wait) {
          if (back || seen_[index(wait.after)] == round_) return;
          seen_[index(wait.after)] = round_;
          reached_by_[index(wait.after)] = wait;
          if (wait.after == start) back = true;
          next_level.push_back(wait.after);
        });
        if (back) return way_back(start);
      }
      level = std::move(next_level);
    }
    return {};
  }

 private:
  template <class Visit>
  void each_step(TaskId task, const Visit& visit) {
    const TaskId next = graph_.next(task);
    if (next != kNoTask && graph_.lane(graph_.lane_of(task)).discipline == Discipline::fifo) {
      visit(Dependency{.before = task, .after = next, .why = graph_.names().find("in line")});
    }
    graph_.each_dependent(task, visit);
  }

  std::vector<Dependency> way_back(TaskId start) const {
    std::vector<Dependency> circle;
    TaskId at = start;
    do {
      circle.push_back(reached_by_[index(at)]);
      at = circle.back().before;
    } while (at != start);
    std::reverse(circle.begin(), circle.end());
    return circle;
  }

  const Graph& graph_;
  std::vector<Dependency> reached_by_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t round_ = 0;
};

}  // namespace

std::vector<Dependency> shortest_circle(const Graph& graph) {
  CircleSearch search(graph);
  std::vector<Dependency> best;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    std::vector<Dependency> found =
        search.through(TaskId{i}, best.empty() ? kNothing : best.size());
    if (!found.empty()) best = std::move(found);
  }
  return best;
}

}  // namespace foretrace
