#pragma once

// The dependency graph: what a run does, without saying when.
//
// Tasks run on lanes. A lane runs one task at a time in a fixed order: a CPU thread, a CUDA stream,
// a copy engine. A dependency makes a task wait for one elsewhere: a kernel for its launch, a host
// thread for a stream. Nothing else delays a task, so a transform that edits lanes and dependencies
// has fully described the change in timing.
//
//     cpu     launch_a  launch_b            launch_a -> a
//     stream            a         b         launch_b -> b
//
// A wait is always a dependency, never a duration.

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/task.h"

namespace foretrace {

/// Ids stay valid as long as the graph lives, also those of removed tasks. Every member takes
/// constant time unless stated otherwise. Passing an id of another graph is a bug.
class Graph {
 public:
  Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  /// Linear. Copies are always spelled out, because a baseline can have a million tasks.
  Graph clone() const;

  Names& names() { return storage_.names; }
  const Names& names() const { return storage_.names; }
  std::string_view name(TaskId id) const { return names()[task(id).name]; }

  LaneId add_lane(Lane lane);
  /// Where the lanes and tasks of an absorbed graph begin; the others follow in their order.
  struct Absorbed {
    std::uint32_t first_lane = 0, first_task = 0;
    TaskId here(TaskId other) const { return TaskId{first_task + index(other)}; }
  };
  /// Adds the lanes of another graph with their tasks and dependencies, removed tasks included; not
  /// its allocations and steps. Linear; reserve() first to absorb many.
  Absorbed absorb(const Graph& other);
  const Lane& lane(LaneId id) const { return storage_.lanes[index(id)]; }
  Lane& lane(LaneId id) { return storage_.lanes[index(id)]; }
  std::size_t lane_count() const { return storage_.lanes.size(); }

  void reserve(std::size_t tasks, std::size_t dependencies);
  TaskId append(LaneId lane, const Task& task);
  TaskId insert_before(TaskId task, const Task& inserted);
  TaskId insert_behind(TaskId task, const Task& inserted);

  /// Removes `task` from its lane and appends it to `lane`, or puts it after `target`. Its
  /// dependencies move with it; tasks after it no longer wait for it, so add any dependency that is
  /// still true.
  void move_to_end(TaskId task, LaneId lane);
  void move_behind(TaskId task, TaskId target);
  void move_before(TaskId task, TaskId target);

  /// Removes `task` from its lane for good. It still passes on the waits between the tasks it
  /// depended on (including those before it on the lane) and those that depended on it, as a task
  /// without duration or place.
  void remove(TaskId task);
  bool removed(TaskId task) const { return storage_.place(task).removed(); }

  /// Cycles are allowed here and reported by simulate(), as a transform may pass through one.
  void add(const Dependency& dependency);
  /// Deletes every dependency for which `condition` holds; returns their number. Linear in all
  /// dependencies.
  std::size_t remove_dependencies(const std::function<bool(const Dependency&)>& condition);
  /// In the order in which they were added. Dropped ones are not among them.
  std::size_t dependency_count() const { return storage_.dependencies.size(); }
  /// Calls `visit` with copies of those that there are at the start, so that it may add others.
  template <class Visit>
  void each_dependency(const Visit& visit) const;
  /// `change` may edit lag, tail, anchor, provenance and reason of each; `before` and `after` stay.
  void change_dependencies(const std::function<void(Dependency&)>& change);
  /// The dependencies with `before == task`, and those with `after == task`, in the order they were
  /// added, as each_dependency() does. Linear in their number.
  template <class Visit>
  void each_dependent(TaskId task, const Visit& visit) const;
  template <class Visit>
  void each_wait(TaskId task, const Visit& visit) const;

  Task& task(TaskId id) { return storage_.tasks[index(id)]; }
  const Task& task(TaskId id) const { return storage_.tasks[index(id)]; }
  /// Ids run from 0 to this, removed ones included.
  std::size_t task_count() const { return storage_.tasks.size(); }

  /// The tasks of a lane in order. kNoTask before the first, after the last, or for a removed task.
  TaskId first(LaneId lane) const { return storage_.lines[index(lane)].first; }
  TaskId last(LaneId lane) const { return storage_.lines[index(lane)].last; }
  TaskId previous(TaskId task) const { return storage_.place(task).previous; }
  TaskId next(TaskId task) const { return storage_.place(task).next; }
  /// For a removed task, the lane it was on last.
  LaneId lane_of(TaskId task) const { return storage_.place(task).lane(); }

  /// In order of their recorded starts; none that a transform added.
  std::vector<RecordedCollective>& collectives() { return storage_.collectives; }
  const std::vector<RecordedCollective>& collectives() const { return storage_.collectives; }

  std::vector<Allocation>& allocations() { return storage_.allocations; }
  const std::vector<Allocation>& allocations() const { return storage_.allocations; }
  /// The tasks that use each allocation, as far as known; in no particular order. See AccessLists.
  std::vector<Access>& accesses() { return storage_.accesses; }
  const std::vector<Access>& accesses() const { return storage_.accesses; }
  /// Bytes in use on each device when the recording began (index = device), allocations without a
  /// maker included.
  std::vector<Bytes>& initial_memory() { return storage_.initial_memory; }
  const std::vector<Bytes>& initial_memory() const { return storage_.initial_memory; }

  /// Names of the devices by index, as in the trace ("NVIDIA A100-SXM4-40GB"); empty if unknown.
  std::vector<std::string>& device_names() { return storage_.device_names; }
  const std::vector<std::string>& device_names() const { return storage_.device_names; }

  std::vector<Step>& steps() { return storage_.steps; }
  const std::vector<Step>& steps() const { return storage_.steps; }
  StepRule& step_rule() { return storage_.step_rule; }
  const StepRule& step_rule() const { return storage_.step_rule; }

  Unexplained& unexplained() { return storage_.unexplained; }
  const Unexplained& unexplained() const { return storage_.unexplained; }

 private:
  friend class WaitGraph;  // Shows the graph to Boost.Graph, in src/graph/bgl.h.

  // Tasks, their places in line and dependencies are flat arrays; a line is linked through the
  // places, and each task has two lists of dependencies linked through the array of them:
  //
  //     place of a   last_wait ------> 7 -> 2 -> 5 -+      The last one is known and points to the
  //                                    ^------------+      first, so that a list keeps its order
  //                                                        and takes one number a task.
  //
  // 64 bytes a task, 20 for its place, 32 a dependency.

  static constexpr std::uint32_t kNothing = 0xffffffff;

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

  struct Storage {
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
    /// Tasks removed in front of `task` pass their waits on to it with its gap, which goes when it
    /// is removed itself.
    void forget_gap(TaskId task);
    /// Enters dependency `number` into the lists of both its tasks.
    void link(std::uint32_t number);
  };

  /// Visits one list of dependencies, which is a ring known by its last element.
  template <class Visit>
  void each_of_ring(std::uint32_t last, std::uint32_t Linked::*next, const Visit& visit) const;

  Storage storage_;
};

template <class Visit>
void Graph::each_dependency(const Visit& visit) const {
  const std::size_t count = storage_.dependencies.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Dependency dependency = storage_.dependencies[i].dependency;
    visit(dependency);
  }
}

template <class Visit>
void Graph::each_of_ring(std::uint32_t last, std::uint32_t Linked::*next,
                         const Visit& visit) const {
  if (last == kNothing) return;
  std::uint32_t at = last;
  do {
    at = storage_.dependencies[at].*next;
    const Dependency dependency = storage_.dependencies[at].dependency;
    visit(dependency);
  } while (at != last);
}

template <class Visit>
void Graph::each_dependent(TaskId task, const Visit& visit) const {
  each_of_ring(storage_.place(task).last_dependent, &Linked::next_dependent, visit);
}

template <class Visit>
void Graph::each_wait(TaskId task, const Visit& visit) const {
  each_of_ring(storage_.place(task).last_wait, &Linked::next_wait, visit);
}

/// The accesses of each allocation, in the order of Graph::accesses(). Valid as long as neither
/// list changes. Linear.
class AccessLists {
 public:
  explicit AccessLists(const Graph& graph);
  std::span<const Access> of(std::size_t allocation) const;

 private:
  std::vector<std::size_t> begins_;
  std::vector<Access> accesses_;
};

/// How long `task` may run beside the end of the one in front on its lane.
Nanoseconds tail_in_front(const Graph& graph, TaskId task);

/// Every task behind all that it waits for, removed ones included. Throws Error if some wait for
/// each other. Linear.
std::vector<TaskId> in_order_of_waits(const Graph& graph);

/// A shortest cycle of tasks that all wait for each other, as its waits in order ("in line" for
/// the task in front on a FIFO lane); empty if there is none. Which one of several is always the
/// same. In a very large tangle the search gives up early, and the cycle is a short one.
std::vector<Dependency> shortest_cycle(const Graph& graph);

/// Reads the notation used in tests and bug reports, one tick being 1us:
///
///     cpu: launch_a 1, launch_b:launch 1     <- lane: task[:kind] ticks, ...
///     launch_a -> a                          <- a waits for launch_a
///     launch_b ->+2 b                        <- ... and 2 ticks more
///     a ->-25% b                             <- b may start when a quarter of a is left
///     a ^-> b                                <- counts from the start of a
///
/// src/graph/notation.md has the whole notation (lane attributes, task attributes, allocations,
/// steps). Throws Error with the line number on anything else.
Graph parse_graph(std::string_view text);
/// parse_graph(to_text(g)) has the same tasks, lanes, dependencies, allocations and steps; removed
/// tasks are left out.
std::string to_text(const Graph& graph);

}  // namespace foretrace
