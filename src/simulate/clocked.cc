#include "simulate/clocked.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>

#include "foretrace/error.h"
#include "simulate/circle.h"
#include "simulate/event_lane.h"
#include "simulate/waits.h"

namespace foretrace {
namespace {

/// Who waits for each task: rows of compressed storage.
class Dependents {
 public:
  struct Entry {
    std::uint32_t after;
    bool from_start;
    std::int64_t lag;
  };

  explicit Dependents(const Graph& graph) : row_(graph.task_count() + 1, 0) {
    std::size_t count = 0;
    each_wait(graph, [&](const Wait& wait) { ++row_[wait.before + 1], ++count; });
    CHECK(count < UINT32_MAX);
    std::partial_sum(row_.begin(), row_.end(), row_.begin());
    std::vector<std::uint32_t> free(row_.begin(), row_.end() - 1);
    entries_.resize(count);
    each_wait(graph, [&](const Wait& wait) {
      entries_[free[wait.before]++] = {wait.after, wait.from_start, wait.lag};
      has_from_start_ |= wait.from_start;
    });
  }

  std::span<const Entry> of(std::uint32_t task) const {
    return {entries_.data() + row_[task], row_[task + 1] - row_[task]};
  }
  bool has_from_start() const { return has_from_start_; }

 private:
  std::vector<std::uint32_t> row_;
  std::vector<Entry> entries_;
  bool has_from_start_ = false;
};

/// One run. A task starts when everything it waits for has happened. On a FIFO lane that is all
/// there is to know, and its times are settled at once, in whatever order; only when no such task
/// is left does the clock of the shared and priority lanes go on to the next moment at which one of
/// them has something to do.
class Replay {
 public:
  Replay(const Graph& graph, std::vector<LetPass>& let_pass)
      : graph_(graph),
        let_pass_(let_pass),
        dependents_(graph),
        left_(graph.task_count(), {0, kInLine}) {
    timeline_.start.resize(graph.task_count());
    timeline_.finish.resize(graph.task_count());
    make_lanes();
  }

  Timeline run() {
    count_waits();
    for (std::uint32_t i = 0; i < left_.size(); ++i) {
      if (left_[i].waits == 0) worklist_.push_back(i);
    }
    settle_all();
    while (!events_.empty()) advance();
    if (settled_ < graph_.task_count()) throw_stuck(graph_);
    return std::move(timeline_);
  }

 private:
  static constexpr std::uint32_t kInLine = 0xffffffff;

  /// Waits that are not over yet, and the lane if it is a shared or priority lane.
  struct Left {
    std::uint32_t waits;
    std::uint32_t lane;
  };

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
    std::unique_ptr<EventLane> lane;  ///< Nothing for a FIFO lane.
    Nanoseconds wakes = kNever;
    bool is_due = false;
  };

  void make_lanes() {
    lanes_.resize(graph_.lane_count());
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
      const LaneId lane{i};
      const Discipline discipline = graph_.lane(lane).discipline;
      if (discipline == Discipline::shared) lanes_[i].lane = make_shared_lane(graph_, lane);
      if (discipline == Discipline::priority) lanes_[i].lane = make_priority_lane(graph_, lane);
    }
  }

  void count_waits() {
    for (std::uint32_t i = 0; i < left_.size(); ++i) {
      for (const Dependents::Entry& wait : dependents_.of(i)) ++left_[wait.after].waits;
      const std::uint32_t lane = index(graph_.lane_of(TaskId{i}));
      if (lanes_[lane].lane && !graph_.removed(TaskId{i})) left_[i].lane = lane;
    }
  }

  void settle_all() {
    while (!worklist_.empty()) {
      const std::uint32_t task = worklist_.back();
      worklist_.pop_back();
      const Nanoseconds start = timeline_.start[task];
      if (left_[task].lane == kInLine) {
        settle(task, start);
      } else if (start <= now_) {
        arrivals_.push_back(task);
      } else {
        events_.push({start, task, true});
      }
    }
  }

  void settle(std::uint32_t task, Nanoseconds start) {
    const TaskId id{task};
    const Nanoseconds finish = start + (graph_.removed(id) ? 0ns : graph_.task(id).duration);
    has_finished(task, finish);
    for (const Dependents::Entry& wait : dependents_.of(task)) {
      release(wait.after, (wait.from_start ? start : finish) + Nanoseconds(wait.lag));
    }
  }

  void has_finished(std::uint32_t task, Nanoseconds finish) {
    ++settled_;
    timeline_.finish[task] = finish;
    timeline_.length = std::max(timeline_.length, finish);
  }

  /// One wait of `task` is over: it may not start before `earliest`.
  void release(std::uint32_t task, Nanoseconds earliest) {
    timeline_.start[task] = std::max(timeline_.start[task], earliest);
    if (--left_[task].waits == 0) worklist_.push_back(task);
  }

  /// Lets everything happen that happens at the time of the first event.
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
      lanes_[left_[task].lane].lane->arrive(TaskId{task}, now_);
      becomes_due(left_[task].lane);
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
    for (const auto& [task, behind] : progress_.started) {
      timeline_.start[index(task)] = now_;
      if (behind != kNoTask) let_pass_.push_back({task, behind});
      if (dependents_.has_from_start()) happened(index(task), true);
    }
    for (const TaskId task : progress_.finished) {
      has_finished(index(task), now_);
      happened(index(task), false);
    }
  }

  /// Releases those who wait for the start of a task, or for its finish, which is now.
  void happened(std::uint32_t task, bool is_start) {
    for (const Dependents::Entry& wait : dependents_.of(task)) {
      if (wait.from_start == is_start) release(wait.after, now_ + Nanoseconds(wait.lag));
    }
  }

  const Graph& graph_;
  std::vector<LetPass>& let_pass_;
  Dependents dependents_;
  Timeline timeline_;
  std::vector<Left> left_;
  std::vector<std::uint32_t> worklist_;  ///< Tasks that wait for nothing any more.
  std::size_t settled_ = 0;

  Nanoseconds now_{-1};
  std::vector<ClockedLane> lanes_;  ///< By LaneId.
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::uint32_t> arrivals_;  ///< Of tasks, now.
  std::vector<std::uint32_t> due_;       ///< Lanes to wake now.
  Progress progress_;
};

}  // namespace

Timeline replay_clocked(const Graph& graph, std::vector<LetPass>& let_pass) {
  return Replay(graph, let_pass).run();
}

}  // namespace foretrace
