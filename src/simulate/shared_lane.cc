#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "foretrace/graph.h"
#include "simulate/event_lane.h"

namespace foretrace {
namespace {

/// A binary heap that removes only its first entry. A predicate of the owner decides which entries
/// still count; the others are dropped when they come first, or when there may be many.
template <class Key, class Before>
class LazyHeap {
 public:
  struct Entry {
    Key key;
    TaskId task;  ///< Breaks ties between equal keys.
    std::uint32_t slot;
    std::uint32_t version;
  };

  template <class Counts>
  void push(const Entry& entry, const Counts& counts) {
    if (entries_.size() >= tidy_at_) {
      std::erase_if(entries_, [&](const Entry& each) { return !counts(each); });
      std::make_heap(entries_.begin(), entries_.end(), IsAfter{});
      tidy_at_ = 2 * entries_.size() + kSlack;
    }
    entries_.push_back(entry);
    std::push_heap(entries_.begin(), entries_.end(), IsAfter{});
  }

  /// Removes the first entry.
  void pop() {
    std::pop_heap(entries_.begin(), entries_.end(), IsAfter{});
    entries_.pop_back();
  }

  /// The first entry that counts, or nullptr.
  template <class Counts>
  const Entry* first(const Counts& counts) {
    while (!entries_.empty() && !counts(entries_.front())) pop();
    return entries_.empty() ? nullptr : &entries_.front();
  }

 private:
  static constexpr std::size_t kSlack = 64;

  struct IsAfter {
    bool operator()(const Entry& a, const Entry& b) const {
      if (Before{}(b.key, a.key)) return true;
      return !Before{}(a.key, b.key) && b.task < a.task;
    }
  };

  std::vector<Entry> entries_;
  std::size_t tidy_at_ = kSlack;
};

/// A capacity that the tasks running at the same time divide max-min fairly: no task gets more than
/// its own limit, and capacity that one task cannot use is divided among the others.
///
///     rate = min(limit, level), with the level at which all rates add up to the capacity
///
/// The work of a task is its bytes; its limit is bytes / duration (none for a duration of 0). A
/// task without bytes takes its duration, whatever the others do.
///
/// A task runs either at its limit, and finishes at a known time, or at the level. All tasks at the
/// level have received the same amount since any moment, so the integral of the level (`served_`)
/// represents them all, and each finishes when it reaches a known value. A change therefore costs
/// time logarithmic in the number of tasks.
class SharedLane final : public EventLane {
 public:
  explicit SharedLane(Bandwidth capacity) : capacity_(capacity.bytes_per_second / 1e9) {}

  void arrive(const Arrival& arrival, Nanoseconds) override { arrived_.push_back(arrival); }

  Nanoseconds wake(Nanoseconds now, LaneProgress& progress) override {
    served_ += level_ * static_cast<double>((now - time_).count());
    time_ = now;
    finish_due(progress);
    for (const Arrival& arrival : arrived_) begin(arrival, progress);
    arrived_.clear();
    // Tasks with almost no work left finish at once, and leave their share to the others.
    do share();
    while (finish_due(progress));
    return next_finish();
  }

 private:
  /// A running task with bytes. At its limit, `work` is what was left at `since`. At the level,
  /// `work` is the value of `served_` at which the task is done.
  struct Active {
    TaskId task = kNoTask;
    std::uint32_t version = 0;  ///< Counts changes; heap entries with an older version are void.
    double limit = 0;
    double work = 0;
    Nanoseconds since{};
  };
  template <class Key, class Before = std::less<Key>>
  using Heap = LazyHeap<Key, Before>;

  /// Marks tasks without bytes, which take no part in the sharing.
  static constexpr std::uint32_t kNoSlot = 0xffffffff;

  auto counts() const {
    return [this](const auto& entry) {
      return entry.slot == kNoSlot || active_[entry.slot].version == entry.version;
    };
  }

  template <class Heap, class Key>
  void push(Heap& heap, Key key, std::uint32_t slot) {
    const Active& active = active_[slot];
    heap.push({key, active.task, slot, active.version}, counts());
  }

  void begin(const Arrival& task, LaneProgress& progress) {
    progress.started.push_back({task.task, kNoTask});
    if (task.bytes.count <= 0) {
      finishes_.push({time_ + task.duration, task.task, kNoSlot, 0}, counts());
      return;
    }
    const auto bytes = static_cast<double>(task.bytes.count);
    const auto least = static_cast<double>(task.duration.count());
    const std::uint32_t slot = free_slot();
    Active& active = active_[slot];
    active.task = task.task;
    active.limit = least > 0 ? bytes / least : kNoLimit;
    active.work = served_ + bytes;
    enter_level(slot);
  }

  std::uint32_t free_slot() {
    if (free_.empty()) {
      active_.emplace_back();
      return static_cast<std::uint32_t>(active_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  void enter_level(std::uint32_t slot) {
    ++at_level_;
    if (active_[slot].limit < kNoLimit) push(level_by_limit_, active_[slot].limit, slot);
    push(level_by_work_, active_[slot].work, slot);
  }

  void leave_level(std::uint32_t slot) {
    --at_level_;
    ++active_[slot].version;
  }

  void run_at_limit(std::uint32_t slot) {
    leave_level(slot);
    Active& active = active_[slot];
    active.work = std::max(0.0, active.work - served_);
    active.since = time_;
    ++at_limit_;
    limited_ += active.limit;
    push(limited_by_limit_, active.limit, slot);
    push(finishes_, after(active.work / active.limit), slot);
  }

  void leave_limit(std::uint32_t slot) {
    Active& active = active_[slot];
    ++active.version;
    limited_ = --at_limit_ == 0 ? 0 : limited_ - active.limit;
  }

  void run_at_level(std::uint32_t slot) {
    leave_limit(slot);
    Active& active = active_[slot];
    const double done = active.limit * static_cast<double>((time_ - active.since).count());
    active.work = served_ + std::max(0.0, active.work - done);
    enter_level(slot);
  }

  /// Moves tasks between limit and level until all rates are fair.
  void share() {
    while (const auto* greatest = limited_by_limit_.first(counts())) {
      if (greatest->key <= level_for(at_level_ + 1, limited_ - greatest->key)) break;
      run_at_level(greatest->slot);
    }
    while (const auto* least = level_by_limit_.first(counts())) {
      if (least->key > level_for(at_level_, limited_)) break;
      run_at_limit(least->slot);
    }
    level_ = at_level_ == 0 ? 0 : level_for(at_level_, limited_);
    if (at_level_ == 0) served_ = 0;
  }

  double level_for(std::size_t tasks, double limited) const {
    return std::max(0.0, capacity_ - limited) / static_cast<double>(tasks);
  }

  /// Finishes the tasks that are due; returns whether there were any.
  bool finish_due(LaneProgress& progress) {
    const std::size_t before = progress.finished.size();
    while (const auto* next = finishes_.first(counts())) {
      if (next->key > time_) break;
      progress.finished.push_back(next->task);
      if (next->slot == kNoSlot) {
        finishes_.pop();
        continue;
      }
      free_.push_back(next->slot);
      leave_limit(next->slot);
    }
    while (const auto* next = level_by_work_.first(counts())) {
      if (at_level(next->key) > time_) break;
      progress.finished.push_back(next->task);
      free_.push_back(next->slot);
      leave_level(next->slot);
    }
    return progress.finished.size() > before;
  }

  /// The time at which `served_` reaches `work`.
  Nanoseconds at_level(double work) const { return after(std::max(0.0, work - served_) / level_); }

  Nanoseconds next_finish() {
    const auto* limited = finishes_.first(counts());
    const auto* shared = level_by_work_.first(counts());
    return std::min(limited ? limited->key : kNever, shared ? at_level(shared->key) : kNever);
  }

  /// The time that many nanoseconds from `time_`, rounded; kNever if it is out of range.
  Nanoseconds after(double nanoseconds) const {
    constexpr double kLongest = 4e18;
    if (!(nanoseconds < kLongest) || static_cast<double>(time_.count()) > kLongest) return kNever;
    return time_ + Nanoseconds(std::llround(nanoseconds));
  }

  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  double capacity_;  ///< In bytes per nanosecond, like all rates here.
  Nanoseconds time_{0};
  double level_ = 0;
  double served_ = 0;         ///< Bytes that a task at the level has received since the last reset.
  double limited_ = 0;        ///< Sum of the limits of the tasks that run at their limits.
  std::size_t at_level_ = 0;  ///< Number of tasks.
  std::size_t at_limit_ = 0;
  std::vector<Active> active_;  ///< By slot; `free_` lists the free slots.
  std::vector<std::uint32_t> free_;
  Heap<double> level_by_limit_;  ///< Tasks that have a limit.
  Heap<double> level_by_work_;
  Heap<double, std::greater<double>> limited_by_limit_;
  Heap<Nanoseconds> finishes_;  ///< Tasks at their limit, and tasks without bytes.
  std::vector<Arrival> arrived_;
};

}  // namespace

std::unique_ptr<EventLane> make_shared_lane(Bandwidth capacity) {
  return std::make_unique<SharedLane>(capacity);
}

}  // namespace foretrace
