#include "analysis/match/union.h"

#include <algorithm>
#include <tuple>

#include "foretrace/error.h"

namespace foretrace {
namespace {

bool is_on_fifo_lane(const Graph& graph, TaskId task) {
  return !graph.removed(task) && graph.lane(graph.lane_of(task)).discipline == Discipline::fifo;
}

/// Duration of a task. On a lane that is not FIFO it is the recorded time, however the task shared
/// the lane.
Nanoseconds duration_in(const UnionSide& side, TaskId task) {
  if (side.graph.removed(task)) return 0ns;
  if (is_on_fifo_lane(side.graph, task)) return side.graph.task(task).duration;
  return side.timeline.finish[index(task)] - side.timeline.start[index(task)];
}

Overlap gap_of(const Graph& graph, TaskId task) {
  return {graph.task(task).tail, graph.task(task).gap};
}

Overlap lag_of(const Graph& graph, const Dependency& wait) {
  return {is_on_fifo_lane(graph, wait.before) ? wait.tail : TailShare{}, wait.lag};
}

/// The one of two overlaps that lets the next task start later, behind a task of this duration.
Overlap later_of(const Overlap& a, const Overlap& b, Nanoseconds duration) {
  return a.past_finish(duration) < b.past_finish(duration) ? b : a;
}

}  // namespace

UnionGraph::UnionGraph(const UnionSide& before, const UnionSide& after, const Matching& matching)
    : before_(before), after_(after) {
  of_before_.assign(before.graph.task_count(), kNone);
  of_after_.assign(after.graph.task_count(), kNone);
  tasks_.reserve(before.graph.task_count() + after.graph.task_count() / 8);
  std::uint32_t number = 0;
  for (const LanePair& lanes : matching.lanes) add_lane(lanes, matching, number++);
  add_removed_tasks();
  add_waits();
}

std::uint32_t UnionGraph::place_of(Side side, TaskId task) const {
  return side == Side::before ? of_before_[index(task)] : of_after_[index(task)];
}

void UnionGraph::add_task(TaskId before, TaskId after, std::uint32_t lane) {
  UnionTask task{.before = before, .after = after};
  const auto place = static_cast<std::uint32_t>(tasks_.size());
  bool is_fifo = true;
  if (before != kNoTask) {
    of_before_[index(before)] = place;
    task.duration_before = duration_in(before_, before);
    task.gap_before = gap_of(before_.graph, before);
    is_fifo = is_fifo && is_on_fifo_lane(before_.graph, before);
  }
  if (after != kNoTask) {
    of_after_[index(after)] = place;
    task.duration_after = duration_in(after_, after);
    task.gap_after = gap_of(after_.graph, after);
    is_fifo = is_fifo && is_on_fifo_lane(after_.graph, after);
  }
  task.lane = is_fifo ? lane : kNone;
  tasks_.push_back(task);
}

/// Merges the tasks of two lanes: tasks that only one side has come before the next pair.
void UnionGraph::add_lane(const LanePair& lanes, const Matching& matching, std::uint32_t number) {
  TaskId a = lanes.before == kNoLane ? kNoTask : before_.graph.first(lanes.before);
  TaskId b = lanes.after == kNoLane ? kNoTask : after_.graph.first(lanes.after);
  while (a != kNoTask || b != kNoTask) {
    if (a != kNoTask && matching.after_of[index(a)] == kNoTask) {
      add_task(a, kNoTask, number);
      a = before_.graph.next(a);
    } else if (b != kNoTask && matching.before_of[index(b)] == kNoTask) {
      add_task(kNoTask, b, number);
      b = after_.graph.next(b);
    } else {
      CHECK(a != kNoTask && b != kNoTask && matching.after_of[index(a)] == b);
      add_task(a, b, number);
      a = before_.graph.next(a);
      b = after_.graph.next(b);
    }
  }
}

/// Adds removed tasks, which are on no lane, because they pass on waits.
void UnionGraph::add_removed_tasks() {
  for (std::uint32_t i = 0; i < of_before_.size(); ++i) {
    if (of_before_[i] == kNone) add_task(TaskId{i}, kNoTask, kNone);
  }
  for (std::uint32_t i = 0; i < of_after_.size(); ++i) {
    if (of_after_[i] == kNone) add_task(kNoTask, TaskId{i}, kNone);
  }
}

void UnionGraph::add_waits() {
  std::vector<UnionWait> all;
  all.reserve(before_.graph.dependency_count() + after_.graph.dependency_count());
  before_.graph.each_dependency([&](const Dependency& wait) {
    all.push_back({.from = of_before_[index(wait.before)],
                   .to = of_before_[index(wait.after)],
                   .lag_before = lag_of(before_.graph, wait),
                   .why_before = wait.why,
                   .in_before = true,
                   .from_start = wait.anchor == Anchor::start});
  });
  after_.graph.each_dependency([&](const Dependency& wait) {
    all.push_back({.from = of_after_[index(wait.before)],
                   .to = of_after_[index(wait.after)],
                   .lag_after = lag_of(after_.graph, wait),
                   .why_after = wait.why,
                   .in_after = true,
                   .from_start = wait.anchor == Anchor::start});
  });
  std::stable_sort(all.begin(), all.end(), [](const UnionWait& a, const UnionWait& b) {
    return std::tuple(a.to, a.from, a.from_start, a.in_after) <
           std::tuple(b.to, b.from, b.from_start, b.in_after);
  });
  for (const UnionWait& wait : all) {
    UnionWait* known = waits_.empty() ? nullptr : &waits_.back();
    const bool same = known != nullptr && known->to == wait.to && known->from == wait.from &&
                      known->from_start == wait.from_start;
    // If one side has the same wait twice, the later one counts.
    if (same && wait.in_before && known->in_before) {
      known->lag_before =
          later_of(known->lag_before, wait.lag_before, tasks_[wait.from].duration_before);
    } else if (same && wait.in_after && known->in_after) {
      known->lag_after =
          later_of(known->lag_after, wait.lag_after, tasks_[wait.from].duration_after);
    } else if (same && wait.in_after) {
      known->in_after = true;
      known->lag_after = wait.lag_after;
      known->why_after = wait.why_after;
    } else {
      waits_.push_back(wait);
    }
  }
  first_wait_.assign(tasks_.size() + 1, 0);
  for (const UnionWait& wait : waits_) ++first_wait_[wait.to + 1];
  for (std::size_t k = 1; k < first_wait_.size(); ++k) first_wait_[k] += first_wait_[k - 1];
}

/// Visits the tasks that a task waits for on one side: its dependencies, and the previous task on
/// its lane.
template <class Visit>
void UnionGraph::each_predecessor(std::uint32_t task, bool after, const Visit& visit) const {
  for (std::uint32_t i = first_wait_[task]; i < first_wait_[task + 1]; ++i) {
    const UnionWait& wait = waits_[i];
    if (after ? wait.in_after : wait.in_before) visit(wait.from);
  }
  const std::uint32_t lane = tasks_[task].lane;
  if (lane == kNone) return;
  for (std::uint32_t front = task; front-- > 0 && tasks_[front].lane == lane;) {
    if (tasks_[front].exists(after)) return visit(front);
  }
}

Nanoseconds UnionGraph::start_of(std::uint32_t task, bool after) const {
  const UnionTask& ids = tasks_[task];
  return after ? after_.timeline.start[index(ids.after)]
               : before_.timeline.start[index(ids.before)];
}

std::optional<PathEnds> UnionGraph::path_between(const UnionWait& wait, PathSearch& search) const {
  constexpr std::size_t kMaxVisited = 4096;
  const bool after = !wait.in_after;  // The side without the wait.
  const UnionTask& goal = tasks_[wait.from];
  const Nanoseconds earliest = start_of(wait.from, after);
  search.seen_in.resize(tasks_.size(), 0);
  ++search.number;
  std::vector<std::pair<std::uint32_t, PathEnds>> open;
  const auto visit = [&](std::uint32_t task, PathEnds path) {
    if (search.seen_in[task] == search.number || open.size() >= kMaxVisited) return;
    search.seen_in[task] = search.number;
    if (start_of(task, after) < earliest) return;
    if (!tasks_[task].matched()) {
      path.first = task;
      if (path.last == kNone) path.last = task;
    }
    open.emplace_back(task, path);
  };
  each_predecessor(wait.to, after, [&](std::uint32_t task) { visit(task, {}); });
  for (std::size_t i = 0; i < open.size() && search.steps_left > 0; ++i, --search.steps_left) {
    const auto [task, path] = open[i];
    // Tasks after the goal on its lane wait for it, too.
    const bool is_behind = goal.lane != kNone && tasks_[task].lane == goal.lane && task > wait.from;
    if (task == wait.from || is_behind) {
      if (path.first == kNone) return {};
      return path;
    }
    each_predecessor(task, after, [&, on = path](std::uint32_t front) { visit(front, on); });
  }
  return {};
}

UnionReplay::UnionReplay(const UnionGraph& graph, std::uint32_t groups) : graph_(graph) {
  const std::vector<UnionTask>& tasks = graph.tasks();
  for (const UnionTask& task : tasks) {
    CHECK(task.group < groups && task.gap_group < groups);
    if (task.lane != kNone) lanes_ = std::max<std::size_t>(lanes_, task.lane + std::size_t{1});
  }
  start_.resize(tasks.size());
  finish_.resize(tasks.size());
  reason_.resize(tasks.size());
  ran_.resize(tasks.size());
  tail_.resize(lanes_);
  order_holds_always_ = number(nullptr);
}

bool UnionReplay::holds(const UnionWait& wait, const std::vector<char>& as_after) const {
  const UnionTask& from = graph_.tasks()[wait.from];
  const UnionTask& to = graph_.tasks()[wait.to];
  if (!from.exists(as_after[from.group] != 0) || !to.exists(as_after[to.group] != 0)) return false;
  // A wait of a task that only one side has exists as long as that task does.
  if (!from.matched() || !to.matched()) return true;
  const bool first = as_after[wait.group] != 0, second = as_after[wait.other_group] != 0;
  if (wait.in_before && wait.in_after) return true;
  return wait.in_after ? first || second : !(first && second);
}

/// Orders the tasks with Kahn's algorithm. Without `as_after` all waits and the order on lanes
/// count. Returns false if there is a cycle.
bool UnionReplay::number(const std::vector<char>* as_after) {
  const std::vector<UnionTask>& tasks = graph_.tasks();
  const std::vector<UnionWait>& waits = graph_.waits();
  const auto counts = [&](const UnionWait& wait) {
    return as_after == nullptr || holds(wait, *as_after);
  };
  std::vector<std::uint32_t> row(tasks.size() + 1, 0), left(tasks.size(), 0);
  std::vector<std::uint32_t> behind(tasks.size(), kNone), last(lanes_, kNone);
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].lane == kNone) continue;
    if (as_after != nullptr && !tasks[i].exists((*as_after)[tasks[i].group] != 0)) continue;
    std::uint32_t& front = last[tasks[i].lane];
    if (front != kNone) behind[front] = i, ++left[i];
    front = i;
  }
  std::vector<char> counted(waits.size());
  for (std::size_t i = 0; i < waits.size(); ++i) {
    counted[i] = counts(waits[i]) ? 1 : 0;
    if (counted[i] != 0) ++row[waits[i].from + 1], ++left[waits[i].to];
  }
  for (std::size_t i = 1; i < row.size(); ++i) row[i] += row[i - 1];
  std::vector<std::uint32_t> dependents(row.back()), next(row.begin(), row.end() - 1);
  for (std::size_t i = 0; i < waits.size(); ++i) {
    if (counted[i] != 0) dependents[next[waits[i].from]++] = waits[i].to;
  }
  order_.clear();
  order_.reserve(tasks.size());
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (left[i] == 0) order_.push_back(i);
  }
  for (std::size_t at = 0; at < order_.size(); ++at) {
    const std::uint32_t task = order_[at];
    const auto release = [&](std::uint32_t waiting) {
      if (--left[waiting] == 0) order_.push_back(waiting);
    };
    if (behind[task] != kNone) release(behind[task]);
    for (std::uint32_t i = row[task]; i < row[task + 1]; ++i) release(dependents[i]);
  }
  return order_.size() == tasks.size();
}

void UnionReplay::place(std::uint32_t number, const std::vector<char>& as_after) {
  const UnionTask& task = graph_.tasks()[number];
  const bool after = as_after[task.group] != 0;
  Nanoseconds start{0};
  std::uint32_t reason = kNone;
  const auto later = [&](Nanoseconds time, std::uint32_t because) {
    if (time > start || (reason == kNone && time == start)) start = time, reason = because;
  };
  const std::uint32_t front = task.lane == kNone ? kNone : tail_[task.lane];
  // A missing task takes the place behind the one before it, because other times may be measured
  // from it.
  const bool exists = task.exists(after);
  if (front != kNone) {
    const bool gap_after = task.matched() ? as_after[task.gap_group] != 0 : task.after != kNoTask;
    const Overlap gap = exists ? (gap_after ? task.gap_after : task.gap_before) : Overlap{};
    later(finish_[front] + gap.past_finish(finish_[front] - start_[front]), front);
  }
  ran_[number] = exists ? 1 : 0;
  if (exists) {
    for (std::uint32_t i = graph_.first_wait(number); i < graph_.first_wait(number + 1); ++i) {
      const UnionWait& wait = graph_.waits()[i];
      if (!holds(wait, as_after)) continue;
      const bool lag_after = wait.in_after && (!wait.in_before || as_after[wait.group] != 0);
      const Overlap& lag = lag_after ? wait.lag_after : wait.lag_before;
      const Nanoseconds began = start_[wait.from], ended = finish_[wait.from];
      later(wait.from_start ? began + lag.lag : ended + lag.past_finish(ended - began), wait.from);
    }
  }
  start_[number] = start;
  reason_[number] = reason;
  finish_[number] = start;
  if (!exists) return;
  finish_[number] += after ? task.duration_after : task.duration_before;
  length_ = std::max(length_, finish_[number]);
  if (task.lane != kNone) tail_[task.lane] = number;
}

bool UnionReplay::run(const std::vector<char>& as_after) {
  if (!order_holds_always_ && !number(&as_after)) return false;
  std::fill(tail_.begin(), tail_.end(), kNone);
  length_ = 0ns;
  for (const std::uint32_t task : order_) place(task, as_after);
  return true;
}

Nanoseconds UnionReplay::measure(const StepSpan& span) const {
  if (span.kind == StepSpan::Kind::length) return length_;
  if (span.kind == StepSpan::Kind::marks) return start_[span.last] - start_[span.first];
  Nanoseconds first = Nanoseconds::max(), last = Nanoseconds::min();
  for (const std::uint32_t task : span.tasks) {
    if (ran_[task] == 0) continue;
    first = std::min(first, start_[task]);
    last = std::max(last, finish_[task]);
  }
  return last < first ? 0ns : last - first;
}

}  // namespace foretrace
