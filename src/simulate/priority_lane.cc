#include <queue>
#include <tuple>

#include "simulate/event_lane.h"

namespace foretrace {
namespace {

/// Runs the most urgent ready task; equally urgent ones in order of arrival, then of id. A task
/// that is running is set aside for a more urgent one at the end of its slice, and goes on later
/// where it stopped:
///
///     slice 2, b arrives at 3     lane |aaaabbbaa|
///
/// Setting aside costs nothing.
class PriorityLane final : public EventLane {
 public:
  PriorityLane(const Graph& graph, LaneId lane) : graph_(graph), slice_(graph.lane(lane).slice) {}

  void arrive(TaskId task, Nanoseconds now) override {
    const Task& arrived = graph_.task(task);
    ready_.push({arrived.priority, now, task, arrived.duration, false});
  }

  Nanoseconds wake(Nanoseconds now, Progress& progress) override {
    while (true) {
      if (running_ && finish_ <= now) {
        progress.finished.push_back(current_.task);
        last_ = current_.task;
        running_ = false;
      }
      if (running_ && must_yield() && end_of_slice(now) <= now) set_aside(now);
      if (running_) return must_yield() ? std::min(finish_, end_of_slice(now)) : finish_;
      if (ready_.empty()) return kNever;
      run_next(now, progress);
    }
  }

 private:
  struct Waiting {
    std::int32_t priority;
    Nanoseconds arrival;
    TaskId task;
    Nanoseconds left;
    bool started;

    /// The greatest comes out of the queue first.
    bool operator<(const Waiting& other) const {
      return std::tie(priority, other.arrival, other.task) <
             std::tie(other.priority, arrival, task);
    }
  };

  bool must_yield() const { return !ready_.empty() && ready_.top().priority > current_.priority; }

  Nanoseconds end_of_slice(Nanoseconds now) const {
    if (slice_ <= 0ns) return now;
    const std::int64_t slices = (now - began_ + slice_ - 1ns) / slice_;
    return began_ + slices * slice_;
  }

  void set_aside(Nanoseconds now) {
    current_.left = finish_ - now;
    last_ = current_.task;
    ready_.push(current_);
    running_ = false;
  }

  void run_next(Nanoseconds now, Progress& progress) {
    current_ = ready_.top();
    ready_.pop();
    running_ = true;
    began_ = now;
    finish_ = now + current_.left;
    if (current_.started) return;
    current_.started = true;
    progress.started.push_back({current_.task, current_.arrival < now ? last_ : kNoTask});
  }

  const Graph& graph_;
  Nanoseconds slice_;
  std::priority_queue<Waiting> ready_;
  Waiting current_{};
  bool running_ = false;
  Nanoseconds began_{0};
  Nanoseconds finish_{0};
  TaskId last_ = kNoTask;  ///< That finished or was set aside most recently.
};

}  // namespace

std::unique_ptr<EventLane> make_priority_lane(const Graph& graph, LaneId lane) {
  return std::make_unique<PriorityLane>(graph, lane);
}

}  // namespace foretrace
