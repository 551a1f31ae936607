#pragma once

// Computes when each task starts with Boost.Graph: the longest path to the task in a separate
// graph, with one additional vertex where all paths begin.
//
//     begin --0--> task         a task may start at once
//     task --wait--> task       time from start to start

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

struct Chains {
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> finish;
  Nanoseconds length{0};
};

/// For graphs with FIFO lanes and without cycles. Linear.
inline Chains longest_chains(const Graph& graph) {
  using Length = boost::property<boost::edge_weight_t, std::int64_t>;
  using Ways =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                            boost::property<boost::vertex_distance_t, std::int64_t>, Length>;
  const std::size_t begin = graph.task_count();
  Ways ways(begin + 1);
  const auto duration = [&](TaskId task) {
    return graph.removed(task) ? 0ns : graph.task(task).duration;
  };
  // Boost finds shortest paths, so all lengths are negative.
  const auto wait = [&](TaskId before, TaskId after, Nanoseconds from_start) {
    boost::add_edge(index(before), index(after), -from_start.count(), ways);
  };
  for (std::uint32_t i = 0; i < begin; ++i) {
    const TaskId task{i}, front = graph.previous(task);
    boost::add_edge(begin, i, 0, ways);
    if (front != kNoTask) wait(front, task, released_at(graph.task(task), 0ns, duration(front)));
  }
  graph.each_dependency([&](const Dependency& each) {
    wait(each.before, each.after, released_at(each, 0ns, duration(each.before)));
  });
  boost::dag_shortest_paths(ways, begin,
                            boost::distance_map(boost::get(boost::vertex_distance, ways)));

  Chains chains;
  for (std::uint32_t i = 0; i < begin; ++i) {
    chains.start.emplace_back(-boost::get(boost::vertex_distance, ways, i));
    chains.finish.push_back(chains.start.back() + duration(TaskId{i}));
    chains.length = std::max(chains.length, chains.finish.back());
  }
  return chains;
}

}  // namespace foretrace
