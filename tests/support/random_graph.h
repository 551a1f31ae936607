#pragma once

// Small graphs for properties that must hold for any graph.

#include <algorithm>
#include <random>
#include <string>

#include "foretrace/graph.h"

namespace foretrace {

struct RandomGraph {
  int lanes = 4;
  int tasks = 24;
  int dependencies = 24;
  bool lags = true;   ///< With lags, anchors and gaps; otherwise plain dependencies only.
  bool tails = true;  ///< With lags, some tasks overlap the ones before them.
};

/// A random graph without cycles: a task is made later than the tasks it waits for. std::mt19937
/// gives the same numbers everywhere, the distributions of the library do not.
inline Graph random_graph(std::mt19937& random, const RandomGraph& shape = {}) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  Graph graph;
  for (int i = 0; i < shape.lanes; ++i) graph.add_lane({.name = "lane" + std::to_string(i)});
  for (int i = 0; i < shape.tasks; ++i) {
    Task task{.duration = Nanoseconds(below(4) == 0 ? 0 : below(9000)),
              .name = graph.names().intern("t" + std::to_string(below(2 * shape.tasks)))};
    if (shape.lags && below(4) == 0) task.gap = Nanoseconds(std::max(0, below(5000) - 2500));
    if (shape.lags && shape.tails && below(4) == 0)
      task.tail = TailShare::nearest(below(101) / 100.0);
    graph.append(LaneId{static_cast<std::uint32_t>(below(shape.lanes))}, task);
  }
  for (int i = 0; i < shape.dependencies; ++i) {
    const int after = 1 + below(shape.tasks - 1);
    Dependency wait{.before = TaskId{static_cast<std::uint32_t>(below(after))},
                    .after = TaskId{static_cast<std::uint32_t>(after)}};
    if (shape.lags && below(3) == 0) wait.lag = Nanoseconds(std::max(0, below(5000) - 1500));
    if (shape.lags && shape.tails && below(4) == 0)
      wait.tail = TailShare::nearest(below(101) / 100.0);
    if (shape.lags && below(4) == 0) wait.anchor = Anchor::start;
    graph.add(wait);
  }
  return graph;
}

}  // namespace foretrace
