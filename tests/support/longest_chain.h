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
  const auto left = [&](Tail tail, TaskId task) { return tail.of(duration(task)); };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const TaskId task{i};
      Nanoseconds start{0};
      if (const TaskId front = graph.previous(task); front != kNoTask) {
        const Task& here = graph.task(task);
        start = std::max(start, chains.finish[index(front)] - left(here.tail, front) + here.gap);
      }
      graph.each_wait(task, [&](const Dependency& wait) {
        const bool from_finish = wait.anchor == Anchor::finish;
        const Nanoseconds anchor =
            from_finish ? chains.finish[index(wait.before)] - left(wait.tail, wait.before)
                        : chains.start[index(wait.before)];
        start = std::max(start, anchor + wait.lag);
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
