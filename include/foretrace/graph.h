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
  /// The ids of the first lane and the first task of an absorbed graph; its others follow in order.
  struct IdOffsets {
    std::uint32_t first_lane = 0, first_task = 0;
    TaskId shifted(TaskId other) const { return TaskId{first_task + index(other)}; }
  };
  /// Adds the lanes of another graph with their tasks and dependencies, including removed tasks,
  /// but not its allocations and steps. Linear; call reserve() first to absorb many.
  IdOffsets absorb(const Graph& other);
  const Lane& lane(LaneId id) const { return storage_.lanes[index(id)]; }
  Lane& lane(LaneId id) { return storage_.lanes[index(id)]; }
  std::size_t lane_count() const { return storage_.lanes.size(); }

  void reserve(std::size_t tasks, std::size_t dependencies);
  TaskId append(LaneId lane, const Task& task);
  TaskId insert_before(TaskId task, const Task& inserted);
  TaskId insert_behind(TaskId task, const Task& inserted);

  /// Moves `task` to the end of `lane`, or directly behind or before `target`, with its
  /// dependencies. Tasks that followed it on its old lane stop waiting for it, so add any
  /// dependency that is still true. REQUIRES: neither task is removed.
  void move_to_end(TaskId task, LaneId lane);
  void move_behind(TaskId task, TaskId target);
  void move_before(TaskId task, TaskId target);

  /// Removes `task` from its lane for good. It keeps passing on waits: tasks that depended on it,
  /// including the next one on its lane, then wait for whatever it waited for, as if it took no
  /// time.
  void remove(TaskId task);
  bool removed(TaskId task) const { return storage_.links_of(task).removed(); }

  /// Cycles are allowed here, because a transform may create one temporarily; simulate() reports
  /// those that remain.
  void add(const Dependency& dependency);
  /// Deletes every dependency for which `condition` holds; returns their number. Linear in all
  /// dependencies.
  std::size_t remove_dependencies(const std::function<bool(const Dependency&)>& condition);
  /// Dependencies that remove_dependencies() deleted do not count.
  std::size_t dependency_count() const { return storage_.dependencies.size(); }
  /// Calls `visit` with a copy of each dependency, in the order in which they were added. `visit`
  /// may add dependencies; it is not called with these.
  template <class Visit>
  void each_dependency(const Visit& visit) const;
  /// `change` may edit lag, tail, anchor, provenance and reason, but not `before` and `after`.
  void change_dependencies(const std::function<void(Dependency&)>& change);
  /// Visit the dependencies with `before == task` and those with `after == task`, as
  /// each_dependency() does. Linear in their number.
  template <class Visit>
  void each_dependent(TaskId task, const Visit& visit) const;
  template <class Visit>
  void each_wait(TaskId task, const Visit& visit) const;

  Task& task(TaskId id) { return storage_.tasks[index(id)]; }
  const Task& task(TaskId id) const { return storage_.tasks[index(id)]; }
  /// The number of ids given out, including those of removed tasks. Ids run from 0.
  std::size_t task_count() const { return storage_.tasks.size(); }

  /// The order of tasks on a lane. Return kNoTask on an empty lane, before the first task, after
  /// the last one, and for a removed task.
  TaskId first(LaneId lane) const { return storage_.lane_ends[index(lane)].first; }
  TaskId last(LaneId lane) const { return storage_.lane_ends[index(lane)].last; }
  TaskId previous(TaskId task) const { return storage_.links_of(task).previous; }
  TaskId next(TaskId task) const { return storage_.links_of(task).next; }
  /// For a removed task, the lane it was on last.
  LaneId lane_of(TaskId task) const { return storage_.links_of(task).lane(); }

  /// The recorded collectives in order of their starts, without any that a transform added.
  std::vector<RecordedCollective>& collectives() { return storage_.collectives; }
  const std::vector<RecordedCollective>& collectives() const { return storage_.collectives; }

  std::vector<Allocation>& allocations() { return storage_.allocations; }
  const std::vector<Allocation>& allocations() const { return storage_.allocations; }
  /// The tasks that use each allocation, as far as known; in no particular order. See AccessLists.
  std::vector<Access>& accesses() { return storage_.accesses; }
  const std::vector<Access>& accesses() const { return storage_.accesses; }
  /// Bytes in use on each device when the recording began (index = device), including allocations
  /// that no task makes.
  std::vector<Bytes>& initial_memory() { return storage_.initial_memory; }
  const std::vector<Bytes>& initial_memory() const { return storage_.initial_memory; }

  /// Names of the devices by index, as in the trace ("NVIDIA A100-SXM4-40GB"); empty if unknown.
  std::vector<std::string>& device_names() { return storage_.device_names; }
  const std::vector<std::string>& device_names() const { return storage_.device_names; }

  GradientEstimate& gradient_estimate() { return storage_.gradient_estimate; }
  const GradientEstimate& gradient_estimate() const { return storage_.gradient_estimate; }

  Contended& contended() { return storage_.contended; }
  const Contended& contended() const { return storage_.contended; }

  /// Kernels of ops that autocast would not leave wholly in half precision, in order of their ids;
  /// empty if the shapes of ops were not recorded.
  std::vector<AutocastWork>& autocast() { return storage_.autocast; }
  const std::vector<AutocastWork>& autocast() const { return storage_.autocast; }

  std::vector<Step>& steps() { return storage_.steps; }
  const std::vector<Step>& steps() const { return storage_.steps; }
  StepRule& step_rule() { return storage_.step_rule; }
  const StepRule& step_rule() const { return storage_.step_rule; }

  Unexplained& unexplained() { return storage_.unexplained; }
  const Unexplained& unexplained() const { return storage_.unexplained; }

 private:
  friend class WaitGraph;  // Shows the graph to Boost.Graph, in src/graph/bgl.h.

  // Tasks, their links, and dependencies are flat arrays. Links join the tasks of a lane. Each task
  // has two lists of dependencies, linked through the array of dependencies:
  //
  //     links of a   last_wait ------> 7 -> 2 -> 5 -+      Only the last one is stored; it points
  //                                    ^------------+      to the first, so a list keeps its order
  //                                                        and costs one number per task.
  //
  // 64 bytes a task, 20 for its links, 32 a dependency.

  static constexpr std::uint32_t kNothing = 0xffffffff;

  /// The neighbors of a task on its lane, and the ends of its lists of dependencies.
  struct TaskLinks {
    static constexpr std::uint32_t kRemoved = 0x80000000;

    TaskId previous = kNoTask;
    TaskId next = kNoTask;
    std::uint32_t lane_and_removed = 0;
    std::uint32_t last_dependent = kNothing;
    std::uint32_t last_wait = kNothing;

    LaneId lane() const { return LaneId{lane_and_removed & ~kRemoved}; }
    bool removed() const { return (lane_and_removed & kRemoved) != 0; }
  };

  /// A dependency, with links to the next one of the same `before` and to the next of the same
  /// `after`.
  struct LinkedDependency {
    Dependency dependency;
    std::uint32_t next_dependent = kNothing;
    std::uint32_t next_wait = kNothing;
  };

  /// The first and the last task on a lane.
  struct LaneEnds {
    TaskId first = kNoTask;
    TaskId last = kNoTask;
  };

  struct Storage {
    Names names;
    std::deque<Lane> lanes;  // A Lane& stays valid while lanes are added.
    std::vector<LaneEnds> lane_ends;
    std::vector<Task> tasks;
    std::vector<TaskLinks> task_links;
    std::vector<LinkedDependency> dependencies;
    std::vector<RecordedCollective> collectives;
    std::vector<Allocation> allocations;
    std::vector<Access> accesses;
    std::vector<Bytes> initial_memory;
    std::vector<std::string> device_names;
    GradientEstimate gradient_estimate;
    Contended contended;
    std::vector<AutocastWork> autocast;
    std::vector<Step> steps;
    StepRule step_rule;
    Unexplained unexplained;

    TaskLinks& links_of(TaskId task) { return task_links[index(task)]; }
    const TaskLinks& links_of(TaskId task) const { return task_links[index(task)]; }
    LaneEnds& ends_of(LaneId lane) { return lane_ends[index(lane)]; }

    TaskId add_task(LaneId lane, const Task& task);
    /// Inserts a task that is on no lane into `lane` after `front`, or first if that is kNoTask.
    void put_behind(TaskId task, TaskId front, LaneId lane);
    /// Takes `task` off its lane and joins its neighbors.
    void take_out(TaskId task);
    /// Clears the gap of `task` on the waits that tasks removed in front of it pass on to it. The
    /// gap belongs to `task` and disappears with it.
    void clear_inherited_gap(TaskId task);
    /// Adds dependency `number` to the lists of both its tasks.
    void link(std::uint32_t number);
  };

  /// Visits one list of dependencies, a ring that is identified by its last element.
  template <class Visit>
  void each_of_ring(std::uint32_t last, std::uint32_t LinkedDependency::*next,
                    const Visit& visit) const;

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
void Graph::each_of_ring(std::uint32_t last, std::uint32_t LinkedDependency::*next,
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
  each_of_ring(storage_.links_of(task).last_dependent, &LinkedDependency::next_dependent, visit);
}

template <class Visit>
void Graph::each_wait(TaskId task, const Visit& visit) const {
  each_of_ring(storage_.links_of(task).last_wait, &LinkedDependency::next_wait, visit);
}

/// Graph::accesses() grouped by allocation, in the same order. Valid as long as neither the
/// allocations nor the accesses of the graph change. Construction is linear.
class AccessLists {
 public:
  explicit AccessLists(const Graph& graph);
  std::span<const Access> of(std::size_t allocation) const;

 private:
  std::vector<std::size_t> begins_;
  std::vector<Access> accesses_;
};

/// How long before the end of the task in front on its lane `task` may start; 0 without such a
/// task.
Nanoseconds tail_in_front(const Graph& graph, TaskId task);

/// Returns all tasks, removed ones included, in an order in which each comes after everything it
/// waits for. Throws Error if tasks wait for each other in a cycle. Linear.
std::vector<TaskId> in_order_of_waits(const Graph& graph);

/// Returns the dependencies of a shortest cycle, in order ("in line" stands for the wait for the
/// task in front on a FIFO lane), or nothing if there is no cycle. The same graph always gives the
/// same cycle. Among very many tasks that wait for each other, the search ends early with a cycle
/// that is short, but perhaps not the shortest.
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
