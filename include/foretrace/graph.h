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

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/names.h"
#include "foretrace/tail.h"
#include "foretrace/units.h"

namespace foretrace {

enum class TaskId : std::uint32_t {};
enum class LaneId : std::uint32_t {};
constexpr TaskId kNoTask{0xffffffff};
constexpr LaneId kNoLane{0xffffffff};
constexpr std::uint32_t index(TaskId id) { return static_cast<std::uint32_t>(id); }
constexpr std::uint32_t index(LaneId id) { return static_cast<std::uint32_t>(id); }

/// host: work of a CPU thread. input: data loading on a CPU thread or worker. launch: a call that
/// gives work to a device. sync: a call that waits for a device. copy_in is host to device,
/// copy_out device to host. transfer: bytes on a link or disk. marker: takes no time, others depend
/// on it.
enum class TaskKind : std::uint8_t {
  host,
  input,
  launch,
  sync,
  kernel,
  collective,
  copy_in,
  copy_out,
  copy_on_device,
  copy_peer,
  fill,
  transfer,
  marker
};
/// Classifies tasks by the work they do, for sums over tasks. Markers are `none`.
enum class TaskClass : std::uint8_t {
  compute,
  communication,
  copy,
  input,
  host,
  launch,
  sync,
  none
};
/// Where the bytes of a task move. host_link: between a host and a device. peers: between devices.
/// storage: on a link or disk of the host.
enum class BytePath : std::uint8_t { none, on_device, host_link, peers, storage };

enum class Phase : std::uint8_t { none, input, forward, backward, update };

/// measured: a record says so (correlation id, sync record). structural: it follows from how lanes
/// work. inferred: by a named rule. assumed: a scenario put it there.
enum class Provenance : std::uint8_t { measured, structural, inferred, assumed };

struct Task {
  Nanoseconds duration{0};
  /// At least this long between the finish of the task in front on the lane, less its `tail`, and
  /// this start. Never negative.
  Nanoseconds gap{0};
  Bytes bytes{};     ///< Moved by a copy, transfer or collective, otherwise 0.
  double flops = 0;  ///< Flops of a kernel, if its shapes are known; otherwise 0.
  NameId name{};
  NameId module{};  ///< "BertModel_0/Linear_3", or empty.
  std::uint32_t record =
      0xffffffff;             ///< Number of the record it came from in its trace table, or none.
  std::int32_t step = -1;     ///< Into Graph::steps(), or -1.
  std::int32_t layer = -1;    ///< Layer of the model in forward order, or -1 if unknown.
  std::int32_t priority = 0;  ///< On a priority lane the greatest runs first.
  /// How many times over the blocks of a kernel fill the device. Below 1, more of the same work
  /// fits into the same time; 0: unknown.
  float fill = 0;
  TaskKind kind = TaskKind::kernel;
  Phase phase = Phase::none;
  /// The share of the task in front that may still be left. Any change of which task that is
  /// empties it.
  Tail tail{};
};

enum class LaneKind : std::uint8_t {
  host_thread,
  stream,
  copy_engine,
  worker,
  link,
  storage,
  origin
};

/// fifo: in line. shared: its tasks run together and divide `capacity` max-min fairly; a task's
/// work is its bytes, and its duration, if not 0, is the least time it takes however much capacity
/// is free. priority: the most urgent ready task runs, and is set aside for a more urgent one at
/// the end of a `slice`.
enum class Discipline : std::uint8_t { fifo, shared, priority };

struct Lane {
  std::string name;
  LaneKind kind = LaneKind::stream;
  std::int32_t device = -1;  ///< -1 is the host.
  std::int32_t rank = 0;
  Discipline discipline = Discipline::fifo;
  Bandwidth capacity{};  ///< Capacity of a shared lane.
  Nanoseconds slice{0};  ///< Time slice of a priority lane; 0: preempts at any time.
};

enum class Anchor : std::uint8_t { finish, start };

/// The rule that says that a task waits. Code may depend on it: step times begin with a measured
/// launch, remove_sync keeps waits for the launch queue, and so on.
///
/// in_line: for the task in front on its lane. launch: for the call that gave it to the device.
/// launch_queue: a call, for a place in the queue. blocking_copy, device_sync: a call, for the
/// device. event_wait, default_stream, device_full: for work on another stream. other_ranks: a
/// collective, for the last of its ranks. recorded_start: for the time at which it was recorded,
/// since no cause is known.
enum class Rule : std::uint8_t {
  in_line,
  launch,
  launch_queue,
  blocking_copy,
  device_sync,
  event_wait,
  default_stream,
  device_full,
  collective_input,
  update_after_collectives,
  thread_handover,
  wait_for_thread,
  other_ranks,
  recorded_start
};

/// A rule, or else a text that only reports show. why_named() makes the latter.
class Why {
 public:
  constexpr Why() = default;
  constexpr Why(Rule rule)  // NOLINT(google-explicit-constructor): `.why = Rule::launch`
      : code_(kFirstRule + static_cast<std::uint32_t>(rule)) {}

  constexpr bool empty() const { return code_ == 0; }
  friend constexpr auto operator<=>(const Why&, const Why&) = default;

 private:
  friend Why why_named(Names& names, std::string_view text);
  friend std::string_view to_string(Why why, const Names& names);
  static constexpr std::uint32_t kFirstRule = 0xffffff00;
  std::uint32_t code_ = 0;  ///< From kFirstRule on a rule, below a NameId.
};
/// The rule of that name, "launch" or "event wait", or else the text.
Why why_named(Names& names, std::string_view text);
std::string_view to_string(Why why, const Names& names);

/// `after` starts no earlier than `lag` (never negative) past the start of `before`, or past its
/// finish less the `tail`. After a task on a shared or priority lane, whose finish is not known
/// ahead, the tail is empty.
struct Dependency {
  TaskId before = kNoTask;
  TaskId after = kNoTask;
  Nanoseconds lag{0};
  Anchor anchor = Anchor::finish;
  Provenance provenance = Provenance::structural;
  Tail tail{};
  Why why{};
};

/// The earliest start of `after` that `wait` allows, with `before` from `start` to `finish`.
inline Nanoseconds released_at(const Dependency& wait, Nanoseconds start, Nanoseconds finish) {
  if (wait.anchor == Anchor::start) return start + wait.lag;
  return finish - wait.tail.of(finish - start) + wait.lag;
}
/// The earliest start of `task` that its lane allows, after a task from `start` to `finish`.
inline Nanoseconds released_at(const Task& task, Nanoseconds start, Nanoseconds finish) {
  return finish - task.tail.of(finish - start) + task.gap;
}

/// A collective, or a message between ranks, as one rank recorded it. Texts are names of the graph;
/// what the recording does not say is empty, 0 or -1.
struct RecordedCollective {
  TaskId task = kNoTask;
  NameId operation{};         ///< "allreduce", or the name of its kernel without arguments.
  NameId type{};              ///< The type of its elements.
  NameId group{}, members{};  ///< The process group, and its ranks as "[0, 1]".
  std::int64_t elements =
      -1;  ///< That go in; ranks may differ in it for an exchange of all with all.
  std::int64_t sequence = -1;  ///< Number within its group.
  std::int32_t group_size = 0;
  Bytes bytes{};  ///< The whole buffer, as nccl-tests counts it; 0 if unknown.
};

/// The use of an allocation. workspace: made and freed inside one op. temporary: neither kept for
/// the backward pass nor for the next step. activation: made in the forward pass and kept for the
/// backward pass.
enum class MemoryUse : std::uint8_t {
  unknown,
  parameter,
  gradient,
  optimizer_state,
  activation,
  temporary,
  workspace,
  input
};

/// Bytes on a device between two tasks; kNoTask: since before the recording, or until after it.
/// Zero bytes means deleted; transforms delete allocations this way.
struct Allocation {
  Bytes bytes{};      ///< As the allocator counts them, rounding included.
  Bytes requested{};  ///< As the program asked for them; 0 where only `bytes` is known.
  TaskId made_by = kNoTask;
  TaskId freed_by = kNoTask;
  /// Made so long after the start of `made_by`, but no later than at its end. The same for freed.
  Nanoseconds made_after{0};
  Nanoseconds freed_after{0};
  /// Order among simultaneous allocator events, as recorded; an allocation that a transform adds
  /// takes the order of the one it replaces.
  std::uint32_t made_order = 0;
  std::uint32_t freed_order = 0;
  std::int32_t device = 0;
  LaneId stream = kNoLane;  ///< The stream whose pool it came from, if known.
  NameId op{};              ///< The op that asked for it, "aten::convolution"; may be empty.
  NameId stack{};           ///< Source lines, innermost first, joined by ';'; may be empty.
  MemoryUse use = MemoryUse::unknown;
};

/// `task` reads or writes an allocation (number in Graph::allocations()). measured where an
/// execution trace says so, otherwise inferred.
struct Access {
  std::uint32_t allocation = 0;
  TaskId task = kNoTask;
  bool writes = false;
  Provenance provenance = Provenance::inferred;
};

struct Step {
  std::string name;  ///< "ProfilerStep#7"
};

/// How the steps of a recording were found: by the profiler's own markers, by ranges that the
/// program named, by calls of Optimizer.step, or only because activities repeat in the same order.
enum class StepSource : std::uint8_t { none, markers, annotation, optimizer, period };

/// How the steps were found, and which of them the step time is taken from. Decided once, from the
/// recorded times, so that replays and what-ifs are measured over the same steps as the recording.
struct StepRule {
  StepSource source = StepSource::none;
  /// Steps that alternate, as with an optimizer in every second one, are counted by so many.
  std::int32_t period = 1;
  bool skips_first = false;  ///< The first period is an outlier.
};

/// Time without a known cause; see DESIGN "Honesty". Kept with the graph so that every answer can
/// print it.
struct Unexplained {
  std::int64_t pinned_tasks = 0;  ///< Starts pinned to recorded times.
  Nanoseconds lag{0};             ///< Time on device lanes kept as a lag without a cause.
  Nanoseconds peers{0};   ///< Part of collectives that only other ranks explain; not in `lag`.
  Nanoseconds window{0};  ///< Length of the recording.
};

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

/// From the table of kinds in src/graph/kinds.cc. A marker and a transfer run on neither side.
bool runs_on_device(TaskKind kind);
bool runs_on_host(TaskKind kind);
TaskClass class_of(TaskKind kind);
BytePath byte_path(TaskKind kind);

inline bool communicates(TaskKind kind) { return class_of(kind) == TaskClass::communication; }
/// Includes fills: they keep a device busy in the same way.
inline bool is_copy(TaskKind kind) { return class_of(kind) == TaskClass::copy; }
/// Work of a thread other than loading data.
inline bool is_host_work(TaskKind kind) { return runs_on_host(kind) && kind != TaskKind::input; }
inline bool moves_bytes(TaskKind kind) { return byte_path(kind) != BytePath::none; }
inline bool crosses_host_link(TaskKind kind) { return byte_path(kind) == BytePath::host_link; }
inline bool is_between_peers(TaskKind kind) { return byte_path(kind) == BytePath::peers; }
/// It needs a link of its device, but not what kernels compute with, and so can hide behind them.
inline bool leaves_device(TaskKind kind) {
  return crosses_host_link(kind) || is_between_peers(kind);
}

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

std::string_view to_string(TaskKind kind);
std::optional<TaskKind> task_kind_named(std::string_view name);
const std::vector<std::string_view>& task_kind_names();
std::string_view to_string(Phase phase);
std::optional<Phase> phase_named(std::string_view name);
const std::vector<std::string_view>& phase_names();
std::string_view to_string(Provenance provenance);
std::string_view to_string(StepSource source);
std::string_view to_string(MemoryUse use);
std::optional<MemoryUse> memory_use_named(std::string_view name);
const std::vector<std::string_view>& memory_use_names();
std::string_view to_string(LaneKind kind);
std::optional<LaneKind> lane_kind_named(std::string_view name);

}  // namespace foretrace
