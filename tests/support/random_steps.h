#pragma once

// Small recordings of training steps, for properties that must hold for any of them.

#include <random>

#include "foretrace/graph.h"

namespace foretrace {

/// Threads that launch work of several steps onto streams. Launches cross each other; some tasks
/// take no time, some overlap, some are followed by gaps; and now and then there is no launch, no
/// device work or no step.
inline Graph random_steps(std::mt19937& random) {
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  Graph graph;
  const std::uint32_t threads = 1 + below(3), streams = below(4);
  for (std::uint32_t i = 0; i < threads; ++i)
    graph.add_lane({.name = "cpu", .kind = LaneKind::host_thread});
  for (std::uint32_t i = 0; i < streams; ++i) graph.add_lane({.name = "gpu", .device = 0});
  const std::uint32_t steps = below(6);
  for (std::uint32_t i = 0; i < steps; ++i) graph.steps().push_back({"s"});
  const NameId names[] = {graph.names().intern("ampere_sgemm_128x64"),
                          graph.names().intern("elementwise_kernel")};
  const std::uint32_t spread = 1 + below(8);  // Often together, or hardly ever.
  for (std::uint32_t i = 0, tasks = 2 + below(40); i < tasks; ++i) {
    const auto time = [&] { return Nanoseconds(below(spread) * below(1000)); };
    Task task{.duration = time(), .step = static_cast<std::int32_t>(below(steps + 1)) - 1};
    if (below(3) != 0 && steps > 0) task.step = static_cast<std::int32_t>(i * steps / tasks);
    if (below(5) == 0) task.gap = Nanoseconds(below(300));
    if (below(8) == 0) task.tail = TailShare::nearest(below(101) / 100.0);
    task.kind = TaskKind::launch;
    const TaskId call = graph.append(LaneId{below(threads)}, task);
    if (streams == 0 || below(4) == 0) continue;
    task.duration = time();
    task.kind = below(4) == 0 ? TaskKind::copy_in : TaskKind::kernel;
    task.name = names[below(2)];
    task.bytes = Bytes{task.kind == TaskKind::copy_in ? below(1 << 20) : 0};
    const LaneId lane{threads + below(streams)};
    const TaskId front = graph.first(lane);
    const bool first = front != kNoTask && below(10) == 0;
    const TaskId work = first ? graph.insert_before(front, task) : graph.append(lane, task);
    graph.add({.before = call,
               .after = work,
               .provenance = below(8) == 0 ? Provenance::inferred : Provenance::measured,
               .why = below(8) == 0 ? WaitReason{} : WaitReason(Rule::launch)});
    if (below(12) == 0) graph.remove(below(2) == 0 ? call : work);
  }
  return graph;
}

}  // namespace foretrace
