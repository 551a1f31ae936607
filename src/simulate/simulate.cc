#include "foretrace/simulate.h"

#include <algorithm>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/timeline.h"
#include "simulate/cycle.h"
#include "simulate/event_lane.h"
#include "simulate/waits.h"

namespace foretrace {
namespace {

/// A task on a shared or priority lane that could have started earlier, and the task that ran
/// before it.
struct OvertakenTask {
  TaskId task;
  TaskId overtaker;
};

/// One replay. A task starts when everything it waits for has happened. On a FIFO lane nothing else
/// matters, so the times of a task are settled at once, in any order. Only when no such task is
/// left does the clock of the shared and priority lanes advance to the next moment at which one of
/// them has something to do.
class Replay {
 public:
  Replay(const Graph& graph, std::vector<OvertakenTask>& overtaken)
      : graph_(graph),
        overtaken_(overtaken),
        count_(static_cast<std::uint32_t>(graph.task_count())),
        tasks_(graph.task_count() + 1) {
    timeline_.finish.resize(count_);
    make_lanes();
    make_tasks();
    link_dependents();
  }

  Timeline run() {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (tasks_[i].waits == 0) worklist_.push_back(i);
    }
    settle_all();
    while (!events_.empty()) advance();
    if (settled_ < count_) throw_stuck(graph_);
    timeline_.start.resize(count_);
    for (std::uint32_t i = 0; i < count_; ++i) timeline_.start[i] = tasks_[i].start;
    return std::move(timeline_);
  }

 private:
  static constexpr std::uint32_t kInLine = 0xffffffff;
  static constexpr std::uint32_t kFromStart = 0x80000000;

  /// The hot fields of a task, kept together for cache locality.
  struct State {
    Nanoseconds start{0};
    Nanoseconds duration{0};
    std::uint32_t waits = 0;       ///< Number of waits that are not over yet.
    std::uint32_t lane = kInLine;  ///< The lane, if it is shared or priority; otherwise kInLine.
    /// Index of its first dependent; the dependents end where those of the next task begin.
    std::uint32_t first = 0;
    std::int32_t priority = 0;
  };
  static_assert(sizeof(State) == 32);

  /// A task arrives at its lane, or a lane wakes up.
  struct Event {
    Nanoseconds time;
    std::uint32_t id;
    bool is_arrival;
    bool operator>(const Event& other) const {
      return std::tie(time, id, is_arrival) > std::tie(other.time, other.id, other.is_arrival);
    }
  };

  struct ClockedLane {
    std::unique_ptr<EventLane> lane;  ///< Null for a FIFO lane.
    Nanoseconds wakes = kNever;
    bool is_due = false;
  };

  void make_lanes() {
    lanes_.resize(graph_.lane_count());
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = graph_.lane(LaneId{i});
      if (lane.discipline == Discipline::shared) {
        lanes_[i].lane = make_shared_lane(lane.capacity);
        bytes_.resize(count_);
      } else if (lane.discipline == Discipline::priority) {
        lanes_[i].lane = make_priority_lane(lane.slice);
      }
    }
  }

  void make_tasks() {
    for (std::uint32_t i = 0; i < count_; ++i) {
      const TaskId id{i};
      if (graph_.removed(id)) continue;
      tasks_[i].duration = graph_.task(id).duration;
      tasks_[i].priority = graph_.task(id).priority;
      if (!bytes_.empty()) bytes_[i] = graph_.task(id).bytes;
      const std::uint32_t lane = index(graph_.lane_of(id));
      if (lanes_[lane].lane) tasks_[i].lane = lane;
    }
  }

  /// Sorts all waits by the task that others wait for (a counting sort).
  void link_dependents() {
    CHECK(graph_.task_count() < kFromStart);
    std::size_t count = 0;
    each_wait(graph_, [&](const Wait& wait) {
      ++tasks_[wait.before].first;
      ++count;
      has_lags_ |= wait.lag != 0 || !wait.tail.empty();
      has_from_start_ |= wait.from_start;
    });
    CHECK(count < UINT32_MAX);
    std::uint32_t end = 0;
    for (State& task : tasks_) task.first = end += task.first;
    dependents_.resize(count);
    if (has_lags_) lags_.resize(count);
    each_wait(graph_, [&](const Wait& wait) {
      const std::uint32_t at = --tasks_[wait.before].first;
      dependents_[at] = wait.after | (wait.from_start ? kFromStart : 0);
      if (has_lags_) lags_[at] = Nanoseconds(wait.lag) - wait.tail.of(tasks_[wait.before].duration);
      ++tasks_[wait.after].waits;
    });
  }

  /// Calls `visit(after, from_start, lag)` for each task that waits for `task`.
  template <class Visit>
  void each_dependent(std::uint32_t task, const Visit& visit) const {
    const std::uint32_t end = tasks_[task + 1].first;
    for (std::uint32_t i = tasks_[task].first; i < end; ++i) {
      const std::uint32_t after = dependents_[i];
      visit(after & ~kFromStart, (after & kFromStart) != 0, has_lags_ ? lags_[i] : 0ns);
    }
  }

  void settle_all() {
    while (!worklist_.empty()) {
      const std::uint32_t task = worklist_.back();
      worklist_.pop_back();
      const Nanoseconds start = tasks_[task].start;
      if (tasks_[task].lane == kInLine) {
        settle(task, start);
      } else if (start <= now_) {
        arrivals_.push_back(task);
      } else {
        events_.push({start, task, true});
      }
    }
  }

  void settle(std::uint32_t task, Nanoseconds start) {
    const Nanoseconds finish = start + tasks_[task].duration;
    has_finished(task, finish);
    each_dependent(task, [&](std::uint32_t after, bool from_start, Nanoseconds lag) {
      release(after, (from_start ? start : finish) + lag);
    });
  }

  void has_finished(std::uint32_t task, Nanoseconds finish) {
    ++settled_;
    timeline_.finish[task] = finish;
    timeline_.length = std::max(timeline_.length, finish);
  }

  /// Ends one wait of the task `number`, which may not start before `earliest`.
  void release(std::uint32_t number, Nanoseconds earliest) {
    State& task = tasks_[number];
    task.start = std::max(task.start, earliest);
    if (--task.waits == 0) worklist_.push_back(number);
  }

  /// Processes everything that happens at the time of the first event.
  void advance() {
    now_ = events_.top().time;
    for (; !events_.empty() && events_.top().time == now_; events_.pop()) {
      const Event& event = events_.top();
      if (event.is_arrival) {
        arrivals_.push_back(event.id);
      } else if (lanes_[event.id].wakes == now_) {
        becomes_due(event.id);
      }
    }
    do wake_due();
    while (!arrivals_.empty());
  }

  void wake_due() {
    std::sort(arrivals_.begin(), arrivals_.end());
    for (const std::uint32_t task : arrivals_) {
      const State& state = tasks_[task];
      const Bytes bytes = bytes_.empty() ? Bytes{} : bytes_[task];
      lanes_[state.lane].lane->arrive({TaskId{task}, state.priority, state.duration, bytes}, now_);
      becomes_due(state.lane);
    }
    arrivals_.clear();
    std::sort(due_.begin(), due_.end());
    for (const std::uint32_t lane : due_) wake(lane);
    due_.clear();
    settle_all();
  }

  void becomes_due(std::uint32_t lane) {
    if (lanes_[lane].is_due) return;
    lanes_[lane].is_due = true;
    due_.push_back(lane);
  }

  void wake(std::uint32_t number) {
    ClockedLane& lane = lanes_[number];
    lane.is_due = false;
    progress_.clear();
    const Nanoseconds next = lane.lane->wake(now_, progress_);
    if (next != kNever && next != lane.wakes) events_.push({next, number, false});
    lane.wakes = next;
    for (const auto& [task, overtaker] : progress_.started) {
      tasks_[index(task)].start = now_;
      if (overtaker != kNoTask) overtaken_.push_back({task, overtaker});
      if (has_from_start_) happened(index(task), true);
    }
    for (const TaskId task : progress_.finished) {
      has_finished(index(task), now_);
      happened(index(task), false);
    }
  }

  /// Releases the tasks that wait for the start (`is_start`) or the finish of `task`, which is
  /// `now_`.
  void happened(std::uint32_t task, bool is_start) {
    each_dependent(task, [&](std::uint32_t after, bool from_start, Nanoseconds lag) {
      if (from_start == is_start) release(after, now_ + lag);
    });
  }

  const Graph& graph_;
  std::vector<OvertakenTask>& overtaken_;
  std::uint32_t count_;
  std::vector<State> tasks_;  ///< By TaskId, with a sentinel behind the last.
  std::vector<Bytes> bytes_;  ///< By TaskId, if any lane is shared.
  std::vector<std::uint32_t> dependents_;
  std::vector<Nanoseconds> lags_;  ///< Lag of each wait less its tail; empty if all are 0.
  bool has_lags_ = false;
  bool has_from_start_ = false;
  Timeline timeline_;
  std::vector<std::uint32_t> worklist_;  ///< Tasks whose waits are all over.
  std::size_t settled_ = 0;

  Nanoseconds now_{-1};
  std::vector<ClockedLane> lanes_;  ///< By LaneId.
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::uint32_t> arrivals_;  ///< Tasks that arrive at `now_`.
  std::vector<std::uint32_t> due_;       ///< Lanes to wake at `now_`.
  LaneProgress progress_;
};

/// Replays a graph with shared or priority lanes. Fills start, finish and length of the result, and
/// appends to `overtaken`.
Timeline replay_clocked(const Graph& graph, std::vector<OvertakenTask>& overtaken) {
  return Replay(graph, overtaken).run();
}

/// Finds what each task of a replayed graph waited for last. If several waits end at the same time,
/// the wait for the task with the smallest id counts.
std::vector<StartReason> find_reasons(const Graph& graph, const Timeline& timeline,
                                      std::span<const OvertakenTask> overtaken) {
  std::vector<StartReason> reasons(graph.task_count());
  const auto offer = [&](TaskId after, Nanoseconds ends, const StartReason& reason) {
    const Nanoseconds start = timeline.start[index(after)];
    if (start != ends || start == 0ns) return;
    StartReason& kept = reasons[index(after)];
    if (kept.before == kNoTask || reason.before < kept.before) kept = reason;
  };
  const auto offer_wait = [&](const Wait& wait, WaitReason why) {
    const Nanoseconds start = timeline.start[wait.before], finish = timeline.finish[wait.before];
    const Nanoseconds anchor = wait.from_start ? start : finish - wait.tail.of(finish - start);
    const Nanoseconds lag(wait.lag);
    offer(TaskId{wait.after}, anchor + lag, {TaskId{wait.before}, why, lag});
  };
  each_wait_in_line(graph, [&](const Wait& wait) { offer_wait(wait, Rule::in_line); });
  const std::vector<char> lanes = lanes_in_line(graph);
  graph.each_dependency([&](const Dependency& dependency) {
    offer_wait(wait_of(graph, lanes, dependency), dependency.why);
  });
  for (const auto& [task, overtaker] : overtaken)
    reasons[index(task)] = {overtaker, Rule::in_line, 0ns};
  return reasons;
}

/// The replay if all lanes are FIFO, which needs no clock. Kahn's algorithm over the graph as it is
/// takes less time than making its rows. A finished task moves the starts of the tasks that wait
/// for it.
class FifoReplay {
 public:
  explicit FifoReplay(const Graph& graph) : graph_(graph), in_line_(lanes_in_line(graph)) {}

  Timeline replay() {
    count_waits();
    std::size_t done = 0;
    while (!ready_.empty()) {
      std::uint32_t task = ready_.back();
      ready_.pop_back();
      for (; task != index(kNoTask); ++done) task = finish(task);
    }
    if (done < graph_.task_count()) throw_stuck(graph_);
    return std::move(timeline_);
  }

 private:
  void count_waits() {
    const auto count = static_cast<std::uint32_t>(graph_.task_count());
    timeline_.start.assign(count, 0ns);
    timeline_.finish.resize(count);
    waits_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i)
      waits_[i] = graph_.previous(TaskId{i}) == kNoTask ? 0 : 1;
    graph_.each_dependency([&](const Dependency& wait) { ++waits_[index(wait.after)]; });
    for (std::uint32_t i = count; i-- > 0;) {
      if (waits_[i] == 0) ready_.push_back(i);
    }
  }

  /// Returns the next task in line if it is ready, otherwise kNoTask. Lines are followed as far as
  /// possible, because their tasks lie close together in memory.
  std::uint32_t finish(std::uint32_t number) {
    const TaskId task{number};
    const Nanoseconds duration = graph_.removed(task) ? 0ns : graph_.task(task).duration;
    const Nanoseconds start = timeline_.start[number], finish = start + duration;
    timeline_.finish[number] = finish;
    timeline_.length = std::max(timeline_.length, finish);
    graph_.each_dependent(task, [&](const Dependency& dependency) {
      const Wait wait = wait_of(graph_, in_line_, dependency);
      const Nanoseconds from = wait.from_start ? start : finish;
      if (release(wait.after, from - wait.tail.of(duration) + Nanoseconds(wait.lag)))
        ready_.push_back(wait.after);
    });
    const TaskId next = graph_.next(task);
    if (next == kNoTask) return index(kNoTask);
    const Task& behind = graph_.task(next);
    return release(index(next), finish - behind.tail.of(duration) + behind.gap) ? index(next)
                                                                                : index(kNoTask);
  }

  bool release(std::uint32_t task, Nanoseconds earliest) {
    timeline_.start[task] = std::max(timeline_.start[task], earliest);
    return --waits_[task] == 0;
  }

  const Graph& graph_;
  std::vector<char> in_line_;
  std::vector<std::uint32_t> waits_;  ///< By task: number of waits that are not over.
  std::vector<std::uint32_t> ready_;
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Graph& graph, const SimulateOptions& options) {
  std::vector<OvertakenTask> overtaken;
  const bool in_line = lane_not_in_line(graph) == kNoLane;
  Timeline timeline = in_line ? FifoReplay(graph).replay() : replay_clocked(graph, overtaken);
  if (options.reasons) timeline.reasons = find_reasons(graph, timeline, overtaken);
  if (options.memory) timeline.memory = memory_curves(graph, timeline);
  return timeline;
}

Nanoseconds replayed_step_time(const Graph& graph) {
  return step_times(graph, simulate(graph, {.reasons = false, .memory = false})).step_time;
}

}  // namespace foretrace
