#include <algorithm>
#include <deque>
#include <map>

#include "simulate/event_lane.h"

namespace foretrace {
namespace {

/// Runs the most urgent ready task; equally urgent tasks run in order of arrival, then of id. A
/// running task is preempted by a more urgent one at the end of its slice, and continues later
/// where it stopped:
///
///     slice 2, b arrives at 3     lane |aaaabbbaa|
///
/// Preemption costs no time.
class PriorityLane final : public EventLane {
 public:
  explicit PriorityLane(Nanoseconds slice) : slice_(slice) {}

  void arrive(const Arrival& arrival, Nanoseconds now) override {
    queue_of(arrival.priority)
        .push_back({arrival.task, arrival.priority, false, now, arrival.duration});
  }

  Nanoseconds wake(Nanoseconds now, LaneProgress& progress) override {
    while (true) {
      if (running_ && finish_ <= now) {
        progress.finished.push_back(current_.task);
        last_ = current_.task;
        running_ = false;
      }
      if (running_ && must_yield() && end_of_slice(now) <= now) set_aside(now);
      if (running_) return must_yield() ? std::min(finish_, end_of_slice(now)) : finish_;
      if (most_urgent_ == nullptr) return kNever;
      run_next(now, progress);
    }
  }

 private:
  struct Waiting {
    TaskId task;
    std::int32_t priority;
    bool started;
    Nanoseconds arrival;
    Nanoseconds left;
  };
  /// Equally urgent tasks in order of arrival. A preempted task returns to the front, because it
  /// arrived first.
  using Queue = std::deque<Waiting>;

  Queue& queue_of(std::int32_t priority) {
    Queue& queue = ready_[priority];
    if (most_urgent_ == nullptr || priority > greatest_) {
      most_urgent_ = &queue;
      greatest_ = priority;
    }
    return queue;
  }

  bool must_yield() const { return most_urgent_ != nullptr && greatest_ > current_.priority; }

  Nanoseconds end_of_slice(Nanoseconds now) const {
    if (slice_ <= 0ns) return now;
    const std::int64_t slices = (now - began_ + slice_ - 1ns) / slice_;
    return began_ + slices * slice_;
  }

  void set_aside(Nanoseconds now) {
    current_.left = finish_ - now;
    last_ = current_.task;
    queue_of(current_.priority).push_front(current_);
    running_ = false;
  }

  Waiting take_most_urgent() {
    const Waiting taken = most_urgent_->front();
    most_urgent_->pop_front();
    if (!most_urgent_->empty()) return taken;
    // An empty queue is kept for later arrivals, unless there are too many of them.
    constexpr std::size_t kMaxEmpty = 8;
    if (ready_.size() > kMaxEmpty) ready_.erase(greatest_);
    most_urgent_ = nullptr;
    for (auto& [priority, queue] : ready_) {
      if (queue.empty()) continue;
      most_urgent_ = &queue;
      greatest_ = priority;
      break;
    }
    return taken;
  }

  void run_next(Nanoseconds now, LaneProgress& progress) {
    current_ = take_most_urgent();
    running_ = true;
    began_ = now;
    finish_ = now + current_.left;
    if (current_.started) return;
    current_.started = true;
    progress.started.push_back({current_.task, current_.arrival < now ? last_ : kNoTask});
  }

  Nanoseconds slice_;
  std::map<std::int32_t, Queue, std::greater<>> ready_;
  Queue* most_urgent_ = nullptr;  ///< The first queue in `ready_` that is not empty, or nullptr.
  std::int32_t greatest_ = 0;     ///< Its priority.
  Waiting current_{};
  bool running_ = false;
  Nanoseconds began_{0};
  Nanoseconds finish_{0};
  TaskId last_ = kNoTask;  ///< The task that finished or was preempted most recently.
};

}  // namespace

std::unique_ptr<EventLane> make_priority_lane(Nanoseconds slice) {
  return std::make_unique<PriorityLane>(slice);
}

}  // namespace foretrace
