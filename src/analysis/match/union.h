#pragma once

// One graph with the tasks and dependencies of two, which can replay as one, as the other, or as a
// mixture.
//
//     before   | a  b     d |        the union     a  b  c  d
//     after    | a     c  d |        with b: before;  with c: after;  with both: a mixture
//
// Every difference (a task of one side, another duration or gap, another lag, a dependency of one
// side) belongs to a group, and each group is switched to either before or after. With all groups
// switched to before, the replay equals that of the graph before, to the nanosecond; likewise
// after. Tasks that are switched off have no effect on the tasks around them on a lane. Tasks on
// lanes that are not FIFO take the time they took in the given timeline.

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/match/match.h"

namespace foretrace {

enum class Side : std::uint8_t { before, after };

struct UnionTask {
  TaskId before = kNoTask, after = kNoTask;
  std::uint32_t lane = kNone;  ///< Lane of the union, or kNone.
  std::uint32_t group = 0;     ///< Decides whether the task exists, or how long it takes.
  std::uint32_t gap_group = 0;
  Nanoseconds duration_before{0}, duration_after{0};
  Overlap gap_before{}, gap_after{};

  bool matched() const { return before != kNoTask && after != kNoTask; }
  bool exists(bool as_after) const { return (as_after ? after : before) != kNoTask; }
};

struct UnionWait {
  std::uint32_t from = 0, to = 0;  ///< `to` waits for `from`.
  /// The wait is as after once both groups are. If the other side has a path over its own tasks
  /// instead, the wait stays until that path is complete.
  std::uint32_t group = 0, other_group = 0;
  Overlap lag_before{}, lag_after{};
  WaitReason why_before{}, why_after{};  ///< Names belong to the graph of each side.
  bool in_before = false, in_after = false;
  bool from_start = false;
};

/// The tasks between which a step time is measured.
struct StepSpan {
  enum class Kind : std::uint8_t { marks, tasks, length } kind = Kind::length;
  std::uint32_t first = 0, last = 0;  ///< For marks: from the start of `first` to that of `last`.
  /// For tasks: from the first start to the last finish of these.
  std::vector<std::uint32_t> tasks{};
};

struct UnionSide {
  const Graph& graph;
  const Timeline& timeline;
};

/// The first and the last task on a path that only one side has.
struct PathEnds {
  std::uint32_t first = kNone, last = kNone;
};

/// State shared by all searches for paths.
struct PathSearch {
  std::vector<std::uint32_t> seen_in{};  ///< By task: number of the last search that reached it.
  std::uint32_t number = 0;
  std::size_t steps_left = 4'000'000;  ///< Tasks that all searches together may still visit.
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
  /// Index in tasks() of a task of one side.
  std::uint32_t place_of(Side side, TaskId task) const;
  /// For a wait of one side between tasks of both: finds a path between the two on the other side
  /// over tasks that only that side has, so that the wait holds there as well. Returns nullopt if
  /// there is none, or the search takes too long.
  ///
  ///     before   a --------> b          after   a -> new -> b
  std::optional<PathEnds> path_between(const UnionWait& wait, PathSearch& search) const;

 private:
  void add_lane(const LanePair& lanes, const Matching& matching, std::uint32_t number);
  void add_task(TaskId before, TaskId after, std::uint32_t lane);
  void add_removed_tasks();
  void add_waits();
  Nanoseconds start_of(std::uint32_t task, bool after) const;
  template <class Visit>
  void each_predecessor(std::uint32_t task, bool after, const Visit& visit) const;

  UnionSide before_, after_;
  std::vector<UnionTask> tasks_;
  std::vector<UnionWait> waits_;  ///< Sorted by `to`, then `from`.
  std::vector<std::uint32_t> first_wait_;
  std::vector<std::uint32_t> of_before_, of_after_;
};

/// Replays a union graph any number of times, with groups 0 .. `groups` - 1 switched either way.
class UnionReplay {
 public:
  UnionReplay(const UnionGraph& graph, std::uint32_t groups);

  /// Replays with each group as before (0) or after. Returns false if tasks wait for each other in
  /// a cycle, which can happen if only some groups are switched. Linear.
  bool run(const std::vector<char>& as_after);
  Nanoseconds start(std::uint32_t task) const { return start_[task]; }
  Nanoseconds finish(std::uint32_t task) const { return finish_[task]; }
  /// The task whose end, or place on the lane, determined the start of `task`; kNone if none did.
  std::uint32_t reason(std::uint32_t task) const { return reason_[task]; }
  bool ran(std::uint32_t task) const { return ran_[task] != 0; }
  Nanoseconds measure(const StepSpan& span) const;

 private:
  bool number(const std::vector<char>* as_after);
  bool holds(const UnionWait& wait, const std::vector<char>& as_after) const;
  void place(std::uint32_t task, const std::vector<char>& as_after);

  const UnionGraph& graph_;
  std::size_t lanes_ = 0;
  /// Topological order of all tasks; valid for every run if order_holds_always_.
  std::vector<std::uint32_t> order_;
  bool order_holds_always_ = false;
  std::vector<Nanoseconds> start_, finish_;
  std::vector<std::uint32_t> reason_;
  std::vector<std::uint32_t> tail_;  ///< The last task placed on each lane.
  std::vector<char> ran_;
  Nanoseconds length_{0};
};

}  // namespace foretrace
