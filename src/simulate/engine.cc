#include <algorithm>
#include <queue>
#include <tuple>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "simulate/circle.h"
#include "simulate/event_lane.h"

namespace foretrace {
namespace {

/// One run. A task starts when everything it waits for has happened. On a FIFO lane that is all
/// there is to know, and its times are settled at once, in whatever order; only when no such task
/// is left does the clock of the shared and priority lanes go on to the next moment at which one of
/// them has something to do.
class Replay {
 public:
  Replay(const Graph& graph, const SimulateOptions& options)
      : graph_(graph), keep_reasons_(options.reasons), waits_(graph.task_count(), 0) {
    timeline_.start.resize(graph.task_count());
    timeline_.finish.resize(graph.task_count());
    if (keep_reasons_) timeline_.reasons.resize(graph.task_count());
    in_line_ = graph.names().find("in line");
    make_lanes();
  }

  Timeline run() {
    count_waits();
    // All that are ready now, before settling one makes others ready.
    std::vector<TaskId> ready;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] == 0) ready.push_back(TaskId{static_cast<std::uint32_t>(i)});
    }
    for (const TaskId task : ready) settle_all(task);
    while (!events_.empty()) advance();
    if (settled_ < graph_.task_count()) throw_circle(graph_);
    return std::move(timeline_);
  }

 private:
  struct Event {
    Nanoseconds time;
    std::uint32_t id;     ///< Of the task that arrives, or of the lane that wakes.
    std::uint32_t stamp;  ///< Of a lane's wake-up; kArrival for a task.
    bool operator>(const Event& other) const {
      return std::tie(time, id, stamp) > std::tie(other.time, other.id, other.stamp);
    }
  };
  static constexpr std::uint32_t kArrival = 0xffffffff;

  void make_lanes() {
    lanes_.resize(graph_.lane_count());
    stamps_.resize(graph_.lane_count(), 0);
    is_due_.resize(graph_.lane_count(), 0);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const LaneId lane{static_cast<std::uint32_t>(i)};
      const Discipline discipline = graph_.lane(lane).discipline;
      if (discipline == Discipline::shared) lanes_[i] = make_shared_lane(graph_, lane);
      if (discipline == Discipline::priority) lanes_[i] = make_priority_lane(graph_, lane);
    }
  }

  /// Of a task that stands on a shared or priority lane, or nothing.
  EventLane* event_lane(TaskId task) {
    if (graph_.removed(task)) return nullptr;
    return lanes_[index(graph_.lane_of(task))].get();
  }

  bool in_line(TaskId task) { return event_lane(task) == nullptr; }

  void count_waits() {
    graph_.each_dependency([&](const Dependency& wait) { ++waits_[index(wait.after)]; });
    for (std::size_t i = 0; i < waits_.size(); ++i) {
      const TaskId task{static_cast<std::uint32_t>(i)};
      if (graph_.previous(task) != kNoTask && in_line(task)) ++waits_[i];
    }
  }

  void settle_all(TaskId ready) {
    worklist_.push_back(ready);
    while (!worklist_.empty()) {
      const TaskId task = worklist_.back();
      worklist_.pop_back();
      if (in_line(task)) {
        settle(task);
      } else {
        events_.push({timeline_.start[index(task)], index(task), kArrival});
      }
    }
  }

  void settle(TaskId task) {
    const Nanoseconds start = timeline_.start[index(task)];
    const Nanoseconds finish = start + (graph_.removed(task) ? 0ns : graph_.task(task).duration);
    finished(task, finish);
    const TaskId next = graph_.next(task);
    if (next != kNoTask) {
      const Nanoseconds gap = graph_.task(next).gap;
      release(next, std::max(finish + gap, start), {task, in_line_, gap});
    }
    graph_.each_dependent(task, [&](const Dependency& wait) {
      const Nanoseconds anchor = wait.anchor == Anchor::start ? start : finish;
      release(wait.after, std::max(anchor + wait.lag, start), {task, wait.why, wait.lag});
    });
  }

  void finished(TaskId task, Nanoseconds finish) {
    ++settled_;
    timeline_.finish[index(task)] = finish;
    timeline_.length = std::max(timeline_.length, finish);
  }

  /// One wait of `task` is over: it may not start before `earliest`.
  void release(TaskId task, Nanoseconds earliest, const Reason& reason) {
    Nanoseconds& start = timeline_.start[index(task)];
    if (keep_reasons_ && earliest >= start) give_reason(task, earliest > start, reason);
    start = std::max(start, earliest);
    if (--waits_[index(task)] == 0) worklist_.push_back(task);
  }

  /// Of several waits that end at the same time the one with the smallest id counts, whoever came
  /// first.
  void give_reason(TaskId task, bool later, const Reason& reason) {
    Reason& kept = timeline_.reasons[index(task)];
    if (later || kept.before == kNoTask || reason.before < kept.before) kept = reason;
  }

  /// Lets everything happen that happens at the time of the first event.
  void advance() {
    const Nanoseconds now = events_.top().time;
    due_.clear();
    while (!events_.empty() && events_.top().time == now) {
      const Event event = events_.top();
      events_.pop();
      if (event.stamp == kArrival) {
        const TaskId task{event.id};
        event_lane(task)->arrive(task, now);
        is_due(graph_.lane_of(task));
      } else if (event.stamp == stamps_[event.id]) {
        is_due(LaneId{event.id});
      }
    }
    std::sort(due_.begin(), due_.end());
    for (const LaneId lane : due_) wake(lane, now);
  }

  void is_due(LaneId lane) {
    if (is_due_[index(lane)]) return;
    is_due_[index(lane)] = 1;
    due_.push_back(lane);
  }

  void wake(LaneId lane, Nanoseconds now) {
    is_due_[index(lane)] = 0;
    progress_.clear();
    const Nanoseconds next = lanes_[index(lane)]->wake(now, progress_);
    const std::uint32_t stamp = ++stamps_[index(lane)];
    if (next != kNever) events_.push({next, index(lane), stamp});
    for (const auto& [task, behind] : progress_.started) {
      timeline_.start[index(task)] = now;
      if (keep_reasons_ && behind != kNoTask) {
        timeline_.reasons[index(task)] = {behind, in_line_, 0ns};
      }
      happened(task, Anchor::start, now);
    }
    for (const TaskId task : progress_.finished) {
      finished(task, now);
      happened(task, Anchor::finish, now);
    }
  }

  /// Releases those who wait for this moment of a task on an event-driven lane.
  void happened(TaskId task, Anchor anchor, Nanoseconds now) {
    graph_.each_dependent(task, [&](const Dependency& wait) {
      if (wait.anchor != anchor) return;
      release(wait.after, now + std::max(wait.lag, 0ns), {task, wait.why, wait.lag});
    });
    while (!worklist_.empty()) {
      const TaskId ready = worklist_.back();
      worklist_.pop_back();
      settle_all(ready);
    }
  }

  const Graph& graph_;
  bool keep_reasons_;
  Timeline timeline_;
  std::vector<std::uint32_t> waits_;  ///< Left, of each task.
  std::vector<TaskId> worklist_;      ///< Tasks that wait for nothing any more.
  std::size_t settled_ = 0;
  NameId in_line_{};

  std::vector<std::unique_ptr<EventLane>> lanes_;  ///< By LaneId; nothing for a FIFO lane.
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::uint32_t> stamps_;  ///< Of the wake-up that counts, by LaneId.
  std::vector<LaneId> due_;
  std::vector<char> is_due_;
  Progress progress_;
};

}  // namespace

Timeline simulate(const Graph& graph, const SimulateOptions& options) {
  Timeline timeline = Replay(graph, options).run();
  if (options.memory) timeline.memory = memory_curves(graph, timeline);
  return timeline;
}

}  // namespace foretrace
