#pragma once

// Facts about the memory of a graph before it is edited, computed once.

#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "transform/edit/block_size.h"
#include "transform/memory/memory_edit.h"

namespace foretrace {

struct MemoryView {
  explicit MemoryView(const Graph& of)
      : graph(of),
        timeline(simulate(of, {.memory = false})),
        launches(of),
        uses(of, timeline.start) {}

  Nanoseconds start(TaskId task) const { return timeline.start[index(task)]; }
  /// Order in time; equal starts by id.
  bool before(TaskId a, TaskId b) const {
    return start(a) != start(b) ? start(a) < start(b) : a < b;
  }
  const Allocation& block(std::uint32_t number) const { return graph.allocations()[number]; }
  Phase phase(TaskId task) const { return graph.task(task).phase; }
  /// Whether it is in the backward pass or the update after it.
  bool is_late(TaskId task) const {
    return phase(task) == Phase::backward || phase(task) == Phase::update;
  }

  const Graph& graph;
  Timeline timeline;
  Launches launches;
  BlockUses uses;
};

}  // namespace foretrace
