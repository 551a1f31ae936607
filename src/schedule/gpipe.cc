// All forward passes, then all backward passes, the last micro-batch first (Huang et al. 2019,
// arXiv 1811.06965): (M + K - 1)(F + B) with K stages and M micro-batches. All micro-batches are in
// flight.

#include "schedule/registered.h"

namespace foretrace {
namespace {

class Gpipe final : public ScheduleRule {
 public:
  Schedule make() const override {
    Schedule schedule = empty_schedule("gpipe", *this);
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      for (std::int64_t i = 0; i < micro_batches; ++i)
        order.push_back(pass(ActionKind::forward, rank, i));
      for (std::int64_t i = micro_batches - 1; i >= 0; --i)
        order.push_back(pass(ActionKind::backward, rank, i));
      schedule.in_flight_limits.push_back(schedule.micro_batches);
    }
    add_updates(schedule);
    return schedule;
  }
};

}  // namespace

std::unique_ptr<ScheduleRule> make_gpipe_schedule() { return std::make_unique<Gpipe>(); }

}  // namespace foretrace
