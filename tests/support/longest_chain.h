#pragma once

// When each task starts, without a clock, a queue or an order: repeats what every wait says until
// nothing changes.

#include <algorithm>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

struct Chains {
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> finish;
  Nanoseconds length{0};
};

/// For graphs with FIFO lanes and without circles. Quadratic.
inline Chains longest_chains(const Graph& graph) {
  Chains chains{std::vector<Nanoseconds>(graph.task_count()),
                std::vector<Nanoseconds>(graph.task_count())};
  const auto duration = [&](TaskId task) {
    return graph.removed(task) ? 0ns : graph.task(task).duration;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const TaskId task{i};
      Nanoseconds start{0};
      if (const TaskId front = graph.previous(task); front != kNoTask) {
        start = std::max({start, chains.finish[index(front)] + graph.task(task).gap,
                          chains.start[index(front)]});
      }
      graph.each_wait(task, [&](const Dependency& wait) {
        const auto& anchor = wait.anchor == Anchor::finish ? chains.finish : chains.start;
        start = std::max(start, anchor[index(wait.before)] + wait.lag);
        // It may overlap the tail of a task, but not start before it.
        start = std::max(start, chains.start[index(wait.before)]);
      });
      const Nanoseconds finish = start + duration(task);
      changed |= start != chains.start[i] || finish != chains.finish[i];
      chains.start[i] = start;
      chains.finish[i] = finish;
      chains.length = std::max(chains.length, finish);
    }
  }
  return chains;
}

}  // namespace foretrace
