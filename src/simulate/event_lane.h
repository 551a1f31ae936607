#pragma once

// A lane whose tasks do not simply run in order, so that their times depend on when they arrive.
// The replay passes the time to the lane; the lane reports which tasks start and finish, and when
// it must be woken next.

#include <cstdint>
#include <memory>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

constexpr Nanoseconds kNever = Nanoseconds::max();

/// The tasks that started and finished in a wake-up, each in order.
struct LaneProgress {
  struct Start {
    TaskId task;
    TaskId overtaker;  ///< The task that ran before it although it was ready, or kNoTask.
  };
  std::vector<Start> started;
  std::vector<TaskId> finished;

  void clear() { started.clear(), finished.clear(); }
};

struct Arrival {
  TaskId task;
  std::int32_t priority;
  Nanoseconds duration;
  Bytes bytes;  ///< Only for a shared lane.
};

class EventLane {
 public:
  virtual ~EventLane() = default;

  /// Announces a task that may start from `now` on. It starts in wake(), which is called at the
  /// same time. Tasks that arrive at the same time are announced in order of their ids.
  virtual void arrive(const Arrival& arrival, Nanoseconds now) = 0;

  /// Advances the lane to `now`, which never decreases. Returns when to wake it next if nothing
  /// else arrives; kNever if it is idle.
  virtual Nanoseconds wake(Nanoseconds now, LaneProgress& progress) = 0;
};

std::unique_ptr<EventLane> make_shared_lane(Bandwidth capacity);
std::unique_ptr<EventLane> make_priority_lane(Nanoseconds slice);

}  // namespace foretrace
