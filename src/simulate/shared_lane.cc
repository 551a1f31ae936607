#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "simulate/event_lane.h"

namespace foretrace {
namespace {

/// A capacity that the tasks running at the same time divide max-min fairly: nobody gets more than
/// its own limit, and what one leaves is divided among the others.
///
///     rate = min(limit, level), with the level at which all rates add up to the capacity
///
/// A task's work is its bytes, its limit is bytes / duration (none for a duration of 0). A task
/// without bytes takes its duration whatever the others do.
///
/// A task either runs at its limit, and finishes at a known time, or at the level. All that run at
/// the level have got the same since any moment, so the level's integral (`served_`) stands for all
/// of them, and each finishes when it reaches a known value. A change therefore costs the logarithm
/// of the number of tasks, not the number.
class SharedLane final : public EventLane {
 public:
  SharedLane(const Graph& graph, LaneId lane)
      : graph_(graph), capacity_(graph.lane(lane).capacity.bytes_per_second / 1e9) {}

  void arrive(const Arrival& arrival, Nanoseconds) override { arrived_.push_back(arrival.task); }

  Nanoseconds wake(Nanoseconds now, Progress& progress) override {
    served_ += level_ * static_cast<double>((now - time_).count());
    time_ = now;
    finish_due(progress);
    for (const TaskId task : arrived_) begin(task, progress);
    arrived_.clear();
    // Tasks that have next to nothing to do finish at once, and leave their part to the others.
    do share();
    while (finish_due(progress));
    return next_finish();
  }

 private:
  /// At its limit: what was left at `since`. At the level: the value of `served_` at which it is
  /// done.
  struct Active {
    double limit;
    double work;
    Nanoseconds since;
    Nanoseconds finish;  ///< Of one that runs at its limit.
  };
  template <class Key>
  using Order = std::set<std::pair<Key, TaskId>>;

  void begin(TaskId id, Progress& progress) {
    const Task& task = graph_.task(id);
    progress.started.push_back({id, kNoTask});
    if (task.bytes.count <= 0) {
      finishes_.emplace(time_ + task.duration, id);
      return;
    }
    const auto bytes = static_cast<double>(task.bytes.count);
    const auto least = static_cast<double>(task.duration.count());
    const double limit = least > 0 ? bytes / least : std::numeric_limits<double>::infinity();
    active_[id] = {limit, served_ + bytes, time_, kNever};
    enter_level(id);
  }

  void enter_level(TaskId id) {
    const Active& active = active_[id];
    level_by_limit_.emplace(active.limit, id);
    level_by_work_.emplace(active.work, id);
  }

  void leave_level(TaskId id) {
    const Active& active = active_[id];
    level_by_limit_.erase({active.limit, id});
    level_by_work_.erase({active.work, id});
  }

  void run_at_limit(TaskId id) {
    leave_level(id);
    Active& active = active_[id];
    active.work = std::max(0.0, active.work - served_);
    active.since = time_;
    active.finish = after(active.work / active.limit);
    limited_by_limit_.emplace(active.limit, id);
    finishes_.emplace(active.finish, id);
    limited_ += active.limit;
  }

  void run_at_level(TaskId id) {
    Active& active = active_[id];
    forget_limited(id, active);
    const double done = active.limit * static_cast<double>((time_ - active.since).count());
    active.work = served_ + std::max(0.0, active.work - done);
    enter_level(id);
  }

  void forget_limited(TaskId id, const Active& active) {
    limited_by_limit_.erase({active.limit, id});
    finishes_.erase({active.finish, id});
    limited_ = limited_by_limit_.empty() ? 0 : limited_ - active.limit;
  }

  /// Moves tasks between the two kinds until everybody's rate is fair.
  void share() {
    while (!limited_by_limit_.empty()) {
      const auto [limit, id] = *limited_by_limit_.rbegin();
      if (limit <= level_for(level_by_work_.size() + 1, limited_ - limit)) break;
      run_at_level(id);
    }
    while (!level_by_limit_.empty()) {
      const auto [limit, id] = *level_by_limit_.begin();
      if (limit > level_for(level_by_work_.size(), limited_)) break;
      run_at_limit(id);
    }
    level_ = level_by_work_.empty() ? 0 : level_for(level_by_work_.size(), limited_);
    if (level_by_work_.empty()) served_ = 0;
  }

  double level_for(std::size_t tasks, double limited) const {
    return std::max(0.0, capacity_ - limited) / static_cast<double>(tasks);
  }

  /// Returns whether there were any.
  bool finish_due(Progress& progress) {
    const std::size_t before = progress.finished.size();
    while (!finishes_.empty() && finishes_.begin()->first <= time_) {
      const TaskId id = finishes_.begin()->second;
      const auto found = active_.find(id);
      if (found == active_.end()) {
        finishes_.erase(finishes_.begin());
      } else {
        forget_limited(id, found->second);
        active_.erase(found);
      }
      progress.finished.push_back(id);
    }
    while (!level_by_work_.empty() && next_at_level() <= time_) {
      const TaskId id = level_by_work_.begin()->second;
      leave_level(id);
      active_.erase(id);
      progress.finished.push_back(id);
    }
    return progress.finished.size() > before;
  }

  Nanoseconds next_at_level() const {
    return after(std::max(0.0, level_by_work_.begin()->first - served_) / level_);
  }

  Nanoseconds next_finish() const {
    Nanoseconds next = finishes_.empty() ? kNever : finishes_.begin()->first;
    if (!level_by_work_.empty()) next = std::min(next, next_at_level());
    return next;
  }

  /// To the nearest nanosecond; never if it is not known when.
  Nanoseconds after(double nanoseconds) const {
    constexpr double kLongest = 4e18;
    if (!(nanoseconds < kLongest) || static_cast<double>(time_.count()) > kLongest) return kNever;
    return time_ + Nanoseconds(std::llround(nanoseconds));
  }

  const Graph& graph_;
  double capacity_;  ///< Bytes per nanosecond, as all rates here.
  Nanoseconds time_{0};
  double level_ = 0;
  double served_ = 0;   ///< What a task at the level has got since this was last 0.
  double limited_ = 0;  ///< The sum of the limits of those that run at theirs.
  std::unordered_map<TaskId, Active> active_;  // Never walked through.
  Order<double> level_by_limit_;
  Order<double> level_by_work_;
  Order<double> limited_by_limit_;
  Order<Nanoseconds> finishes_;  ///< Of those at their limit, and of those without bytes.
  std::vector<TaskId> arrived_;
};

}  // namespace

std::unique_ptr<EventLane> make_shared_lane(const Graph& graph, LaneId lane) {
  return std::make_unique<SharedLane>(graph, lane);
}

}  // namespace foretrace
