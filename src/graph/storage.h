#pragma once

// How a graph is stored while it is edited. Tasks, their places in line and dependencies are flat
// arrays; a line is linked through the places, and each task has two lists of dependencies linked
// through the array of them:
//
//     place of a   last_wait ------> 7 -> 2 -> 5 -+      The last one is known and points to the
//     first, so that
//                                    ^------------+      a list keeps its order and takes one
//                                    number a task.
//
// 64 bytes a task, 20 for its place, 32 a dependency.

#include <cstdint>
#include <deque>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

constexpr std::uint32_t kNothing = 0xffffffff;

/// The place of a task, and the ends of its lists of dependencies.
struct Place {
  static constexpr std::uint32_t kRemoved = 0x80000000;

  TaskId previous = kNoTask;
  TaskId next = kNoTask;
  std::uint32_t lane_and_removed = 0;
  std::uint32_t last_dependent = kNothing;
  std::uint32_t last_wait = kNothing;

  LaneId lane() const { return LaneId{lane_and_removed & ~kRemoved}; }
  bool removed() const { return (lane_and_removed & kRemoved) != 0; }
};

/// A dependency, and the number of the next one with the same `before` and with the same `after`.
struct Linked {
  Dependency dependency;
  std::uint32_t next_dependent = kNothing;
  std::uint32_t next_wait = kNothing;
};

/// The two ends of a line.
struct Line {
  TaskId first = kNoTask;
  TaskId last = kNoTask;
};

struct Graph::Impl {
  Names names;
  std::deque<Lane> lanes;  // A Lane& stays valid while lanes are added.
  std::vector<Line> lines;
  std::vector<Task> tasks;
  std::vector<Place> places;
  std::vector<Linked> dependencies;
  std::vector<RecordedCollective> collectives;
  std::vector<Allocation> allocations;
  std::vector<Access> accesses;
  std::vector<Bytes> initial_memory;
  std::vector<std::string> device_names;
  std::vector<Step> steps;
  StepRule step_rule;
  Unexplained unexplained;

  Place& place(TaskId task) { return places[index(task)]; }
  const Place& place(TaskId task) const { return places[index(task)]; }
  Line& line(LaneId lane) { return lines[index(lane)]; }

  TaskId add_task(LaneId lane, const Task& task);
  /// Puts a task that is on no lane after `front` (kNoTask: first) on `lane`.
  void put_behind(TaskId task, TaskId front, LaneId lane);
  /// Closes the line over `task`.
  void take_out(TaskId task);
  /// Tasks removed in front of `task` pass their waits on to it with its gap, which goes when it is
  /// removed itself.
  void forget_gap(TaskId task);
  /// Enters dependency `number` into the lists of both its tasks.
  void link(std::uint32_t number);
};

}  // namespace foretrace
