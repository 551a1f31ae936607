// Rank r of p runs p - 1 - r forward passes ahead, then alternates forward and backward passes, and
// drains: (m + p - 1)(F + B), with p - r micro-batches in flight. This is DAPPLE's schedule (Fan et
// al. 2021), and PipeDream-Flush (Narayanan et al. 2021, arXiv 2006.09503).

#include <algorithm>

#include "schedule/registered.h"

namespace foretrace {
namespace {

class OneFOneB final : public ScheduleRule {
 public:
  Schedule make() const override {
    Schedule schedule = empty_schedule("1f1b", *this);
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      const std::int64_t ahead = std::min(stages - 1 - rank, micro_batches);
      schedule.orders[static_cast<std::size_t>(rank)] =
          one_f_one_b_order(rank, ahead, micro_batches);
      schedule.in_flight_limits.push_back(
          static_cast<std::int32_t>(std::min(stages - rank, micro_batches)));
    }
    add_updates(schedule);
    return schedule;
  }
};

}  // namespace

std::unique_ptr<ScheduleRule> make_one_f_one_b_schedule() { return std::make_unique<OneFOneB>(); }

}  // namespace foretrace
