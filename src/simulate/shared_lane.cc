#include <algorithm>
#include <cmath>
#include <limits>

#include "simulate/event_lane.h"

namespace foretrace {
namespace {

/// A capacity that the tasks running at the same time divide max-min fairly: nobody gets more than
/// its own limit, and what one leaves is divided among the others.
///
///     rate = min(limit, level), with the level at which all rates add up to the capacity
///
/// A task's work is its bytes, its limit is bytes / duration (none for a duration of 0). A task
/// without bytes takes its duration whatever the others do. Rates change only when a task arrives
/// or finishes.
class SharedLane final : public EventLane {
 public:
  SharedLane(const Graph& graph, LaneId lane)
      : graph_(graph), capacity_(graph.lane(lane).capacity.bytes_per_second / 1e9) {}

  void arrive(TaskId task, Nanoseconds now) override { arrived_.push_back({task, now}); }

  Nanoseconds wake(Nanoseconds now, Progress& progress) override {
    const double elapsed = static_cast<double>((now - time_).count());
    time_ = now;
    for (Active& each : active_) each.left -= each.rate * elapsed;
    const auto done = [&](const Active& each) { return each.finish <= now; };
    for (const Active& each : active_) {
      if (done(each)) progress.finished.push_back(each.task);
    }
    std::erase_if(active_, done);
    for (const auto& [task, when] : arrived_) begin(task, progress);
    arrived_.clear();
    share();
    Nanoseconds next = kNever;
    for (Active& each : active_) next = std::min(next, each.finish);
    return next;
  }

 private:
  struct Active {
    TaskId task;
    double left;   ///< Bytes.
    double limit;  ///< Bytes per nanosecond.
    double rate;
    Nanoseconds finish;
  };
  struct Arrival {
    TaskId task;
    Nanoseconds when;
  };

  void begin(TaskId id, Progress& progress) {
    const Task& task = graph_.task(id);
    progress.started.push_back({id, kNoTask});
    const double bytes = static_cast<double>(task.bytes.count);
    const double least = static_cast<double>(task.duration.count());
    const double limit = least > 0 ? bytes / least : std::numeric_limits<double>::infinity();
    active_.push_back({id, bytes, limit, 0, bytes > 0 ? kNever : time_ + task.duration});
    std::inplace_merge(active_.begin(), active_.end() - 1, active_.end(),
                       [](const Active& a, const Active& b) { return a.limit < b.limit; });
  }

  /// In order of limits, each takes its limit or an equal part of what is left.
  void share() {
    double left = capacity_;
    std::size_t others = active_.size();
    for (Active& each : active_) {
      const double part = left / static_cast<double>(others--);
      each.rate = std::min(each.limit, part);
      left -= each.rate;
      if (each.limit == 0) continue;
      const double time = std::max(0.0, each.left) / each.rate;
      each.finish = time < 9e18 ? time_ + Nanoseconds(std::llround(time)) : kNever;
    }
  }

  const Graph& graph_;
  double capacity_;
  std::vector<Active> active_;  ///< In order of limits.
  std::vector<Arrival> arrived_;
  Nanoseconds time_{0};
};

}  // namespace

std::unique_ptr<EventLane> make_shared_lane(const Graph& graph, LaneId lane) {
  return std::make_unique<SharedLane>(graph, lane);
}

}  // namespace foretrace
