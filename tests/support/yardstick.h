#pragma once

// A large graph that is the same everywhere: tasks of 1 .. 20000 ns on 64 lanes, each waiting for
// the previous task on its lane and for up to three tasks of the last eight layers. Independent
// engines agree on its makespan.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace::yardstick {

constexpr std::uint32_t kLanes = 64;
constexpr std::uint32_t kLayers = 8;

class Random {
 public:
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 16);
  }

 private:
  std::uint64_t state_ = 88172645463325252;
};

/// Calls `add_task(i, nanoseconds)` for each task, and then `add_wait(before, i)` for each task on
/// another lane that it waits for.
template <class AddTask, class AddWait>
void generate(std::uint32_t count, const AddTask& add_task, const AddWait& add_wait) {
  Random random;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t layer = i / kLanes;
    add_task(i, 1 + random.next() % 20000);
    if (layer == 0) continue;
    for (std::uint32_t waits = random.next() & 3; waits > 0; --waits) {
      const std::uint32_t back = 1 + random.next() % std::min(kLayers, layer);
      const std::uint32_t before = (layer - back) * kLanes + random.next() % kLanes;
      if (before != i - kLanes) add_wait(before, i);
    }
  }
}

/// On priority lanes the order of tasks on the lane has no effect, so dependencies keep them in
/// that order.
inline Graph make_graph(std::uint32_t count, Discipline discipline = Discipline::fifo) {
  Graph graph;
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    graph.add_lane({.name = std::to_string(i), .discipline = discipline});
  }
  graph.reserve(count, count + count * 6 / 10);
  generate(
      count,
      [&](std::uint32_t i, std::uint32_t duration) {
        graph.append(LaneId{i % kLanes}, {.duration = Nanoseconds(duration)});
        if (discipline == Discipline::fifo || i < kLanes) return;
        graph.add({.before = TaskId{i - kLanes}, .after = TaskId{i}});
      },
      [&](std::uint32_t before, std::uint32_t after) {
        graph.add({.before = TaskId{before}, .after = TaskId{after}});
      });
  return graph;
}

}  // namespace foretrace::yardstick
