#pragma once

// One graph with the tasks and dependencies of two, which replays as the one, as the other, or as
// anything between.
//
//     before   | a  b     d |        the union     a  b  c  d
//     after    | a     c  d |        with b: before;  with c: after;  with both: something between
//
// Every difference (a task of one side, another duration or gap, another lag, a dependency of one
// side) belongs to a group, and each group is switched to either before or after. With all groups
// as before the replay is that of the graph before, to the nanosecond, and likewise after. Tasks
// that are switched off have no effect on the tasks around them on a lane. Tasks on lanes that are
// not FIFO take the time they took in the timeline given.

#include <cstdint>
#include <optional>
#include <vector>

#include "ask/compare/match.h"

namespace foretrace {

enum class Side : std::uint8_t { before, after };

struct UnionTask {
  TaskId before = kNoTask, after = kNoTask;
  std::uint32_t lane = kNone;  ///< Lane of the union, or kNone.
  std::uint32_t group = 0;     ///< Whether it is there, or how long it takes.
  std::uint32_t gap_group = 0;
  Nanoseconds duration_before{0}, duration_after{0};
  Overlap gap_before{}, gap_after{};

  bool matched() const { return before != kNoTask && after != kNoTask; }
  bool is_there(bool as_after) const { return (as_after ? after : before) != kNoTask; }
};

struct UnionWait {
  std::uint32_t from = 0, to = 0;  ///< `to` waits for `from`.
  /// It is as after once both are. Where the other side has a way instead, it stays until that way
  /// is whole.
  std::uint32_t group = 0, other_group = 0;
  Overlap lag_before{}, lag_after{};
  Why why_before{}, why_after{};  ///< In the names of each graph.
  bool in_before = false, in_after = false;
  bool from_start = false;
};

/// The tasks between which a step time is measured.
struct StepSpan {
  enum class Kind : std::uint8_t { marks, tasks, length } kind = Kind::length;
  std::uint32_t first = 0, last = 0;   ///< For marks: tasks whose starts count.
  std::vector<std::uint32_t> tasks{};  ///< From the first start to the last finish of these.
};

struct UnionSide {
  const Graph& graph;
  const Timeline& timeline;
};

/// The first and the last of those tasks on a path that only one side has.
struct WayBetween {
  std::uint32_t first = kNone, last = kNone;
};

/// State that the searches for ways share.
struct WaySearch {
  std::vector<std::uint32_t> seen_in{};  ///< By task: the last search that came by.
  std::uint32_t number = 0;
  std::size_t steps_left = 4'000'000;  ///< Budget of all searches together.
};

class UnionGraph {
 public:
  UnionGraph(const UnionSide& before, const UnionSide& after, const Matching& matching);

  std::vector<UnionTask>& tasks() { return tasks_; }
  const std::vector<UnionTask>& tasks() const { return tasks_; }
  std::vector<UnionWait>& waits() { return waits_; }
  const std::vector<UnionWait>& waits() const { return waits_; }
  /// The waits of a task are those from first_wait(task) to first_wait(task + 1).
  std::uint32_t first_wait(std::uint32_t task) const { return first_wait_[task]; }
  /// The number of a task of one of the two.
  std::uint32_t place_of(Side side, TaskId task) const;
  /// For a wait that one side has between tasks of both: whether the other side has a path between
  /// the two over tasks that only it has, so that the wait exists nevertheless.
  ///
  ///     before   a --------> b          after   a -> new -> b
  std::optional<WayBetween> came_between(const UnionWait& wait, WaySearch& search) const;

 private:
  void add_line(const LanePair& lanes, const Matching& matching, std::uint32_t number);
  void add_task(TaskId before, TaskId after, std::uint32_t lane);
  void add_others();
  void add_waits();
  Nanoseconds start_of(std::uint32_t task, bool after) const;
  template <class Visit>
  void each_in_front(std::uint32_t task, bool after, const Visit& visit) const;

  UnionSide before_, after_;
  std::vector<UnionTask> tasks_;
  std::vector<UnionWait> waits_;  ///< By `to`, then `from`.
  std::vector<std::uint32_t> first_wait_;
  std::vector<std::uint32_t> of_before_, of_after_;
};

/// Replays a union graph again and again. Groups 0 .. `groups` - 1.
class UnionReplay {
 public:
  UnionReplay(const UnionGraph& graph, std::uint32_t groups);

  /// False if tasks wait for each other in a cycle, which may happen with some groups switched and
  /// others not. Linear.
  bool run(const std::vector<char>& as_after);
  Nanoseconds start(std::uint32_t task) const { return start_[task]; }
  Nanoseconds finish(std::uint32_t task) const { return finish_[task]; }
  /// The task whose end, or place on the lane, determined the start of this one; kNone if none did.
  std::uint32_t reason(std::uint32_t task) const { return reason_[task]; }
  bool ran(std::uint32_t task) const { return there_[task] != 0; }
  Nanoseconds measure(const StepSpan& span) const;

 private:
  bool number(const std::vector<char>* as_after);
  bool holds(const UnionWait& wait, const std::vector<char>& as_after) const;
  void place(std::uint32_t task, const std::vector<char>& as_after);

  const UnionGraph& graph_;
  std::size_t lanes_ = 0;
  std::vector<std::uint32_t> order_;  ///< Topological order of all tasks, or of those that apply.
  bool order_holds_always_ = false;
  std::vector<Nanoseconds> start_, finish_;
  std::vector<std::uint32_t> reason_;
  std::vector<std::uint32_t> tail_;  ///< The last task placed on each lane.
  std::vector<char> there_;
  Nanoseconds length_{0};
};

}  // namespace foretrace
