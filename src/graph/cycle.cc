#include <algorithm>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/iterator/function_output_iterator.hpp>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "graph/bgl.h"

namespace foretrace {
namespace {

using Edge = WaitGraph::Edge;

constexpr std::size_t kMaxWaitsFollowed = 20'000'000;  // Takes about a second.

/// Numbers the strongly connected components; tasks that can reach each other have the same number.
std::vector<std::uint32_t> component_numbers(const WaitGraph& waits, std::size_t task_count) {
  std::vector<std::uint32_t> component(task_count);
  const auto index_of_task = get(boost::vertex_index, waits);
  boost::strong_components(waits,
                           boost::make_iterator_property_map(component.begin(), index_of_task));
  return component;
}

/// Finds the shortest path from a task back to itself. It cannot leave the task's component.
class CycleSearch {
 public:
  explicit CycleSearch(const Graph& graph)
      : waits_(graph),
        component_(component_numbers(waits_, graph.task_count())),
        reached_in_(graph.task_count(), 0),
        reached_by_(graph.task_count()) {}

  std::vector<Edge> shortest() {
    std::vector<std::uint32_t> size(component_.size(), 0);
    for (const std::uint32_t number : component_) ++size[number];
    std::vector<Edge> best;
    for (std::uint32_t task = 0; task < component_.size(); ++task) {
      if (size[component_[task]] == 1 && !waits_for_itself(task)) continue;
      std::vector<Edge> found =
          shortest_through(task, best.empty() ? component_.size() + 1 : best.size());
      if (!found.empty()) best = std::move(found);
      if (!best.empty() && steps_ > kMaxWaitsFollowed) break;
    }
    return best;
  }

 private:
  bool waits_for_itself(std::uint32_t task) const {
    const auto [begin, end] = adjacent_vertices(task, waits_);
    return std::find(begin, end, task) != end;
  }

  /// Returns the shortest cycle through `start` with fewer than `limit` waits, or an empty one.
  std::vector<Edge> shortest_through(std::uint32_t start, std::size_t limit) {
    ++round_;
    level_ = {start};
    for (std::size_t length = 1; length < limit && !level_.empty(); ++length) {
      next_level_.clear();
      for (const std::uint32_t task : level_) {
        const auto [begin, end] = out_edges(task, waits_);
        for (auto it = begin; it != end; ++it) {
          if (reach(*it) && (*it).after == start) return trace_back(start);
        }
      }
      std::swap(level_, next_level_);
    }
    return {};
  }

  /// Returns whether `edge.after` is reached for the first time in this round.
  bool reach(const Edge& edge) {
    ++steps_;
    if (reached_in_[edge.after] == round_ || component_[edge.after] != component_[edge.before])
      return false;
    reached_in_[edge.after] = round_;
    reached_by_[edge.after] = edge;
    next_level_.push_back(edge.after);
    return true;
  }

  std::vector<Edge> trace_back(std::uint32_t start) const {
    std::vector<Edge> cycle;
    std::uint32_t at = start;
    do {
      cycle.push_back(reached_by_[at]);
      at = cycle.back().before;
    } while (at != start);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }

  WaitGraph waits_;
  std::vector<std::uint32_t> component_;
  std::vector<std::uint32_t> reached_in_;  ///< The round in which a task was reached.
  std::vector<Edge> reached_by_;
  std::uint32_t round_ = 0;
  std::size_t steps_ = 0;
  std::vector<std::uint32_t> level_, next_level_;
};

}  // namespace

std::vector<TaskId> in_order_of_waits(const Graph& graph) try {
  const WaitGraph waits(graph);
  std::vector<TaskId> order(graph.task_count());
  auto front = order.rbegin();  // topological_sort() puts out the last task first.
  const auto put = [&](std::uint32_t task) { *front++ = TaskId{task}; };
  boost::topological_sort(waits, boost::make_function_output_iterator(put));
  return order;
} catch (const boost::not_a_dag&) {
  throw Error("tasks wait for each other in a cycle");
}

std::vector<Dependency> shortest_cycle(const Graph& graph) {
  const WaitGraph waits(graph);
  std::vector<Dependency> cycle;
  for (const Edge& edge : CycleSearch(graph).shortest()) cycle.push_back(waits.dependency(edge));
  return cycle;
}

}  // namespace foretrace
