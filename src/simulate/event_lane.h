#pragma once

// A lane whose tasks do not simply follow each other, so that what happens on it depends on when
// tasks arrive. The replay tells it the time; it tells which tasks start and finish, and when it
// wants to be woken next.

#include <cstdint>
#include <memory>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

constexpr Nanoseconds kNever = Nanoseconds::max();

/// Lists the results of a wake-up, in order.
struct LaneProgress {
  struct Start {
    TaskId task;
    TaskId behind;  ///< Whom it had to let pass, or kNoTask.
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

  /// A task may start from `now` on. It does so in wake(), which follows at the same time. Tasks
  /// that arrive at the same time do so in order of their ids.
  virtual void arrive(const Arrival& arrival, Nanoseconds now) = 0;

  /// Brings the lane to `now`, which never goes back. Returns when it has to be woken if nothing
  /// else arrives.
  virtual Nanoseconds wake(Nanoseconds now, LaneProgress& progress) = 0;
};

std::unique_ptr<EventLane> make_shared_lane(Bandwidth capacity);
std::unique_ptr<EventLane> make_priority_lane(Nanoseconds slice);

}  // namespace foretrace
