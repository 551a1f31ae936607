// Two copies of the model in opposite directions (Jain et al. 2020). The forward pass of a
// micro-batch follows the backward pass of the previous one over the ranks, so that each rank has
// one micro-batch in flight. With B = 2F a pair takes 4D + 2 forward passes: the bubble is (D -
// 1)/(D + 1/2) of the time.
//
//     rank 0   0F .. .. .. .. 0B 0B 1F 1B 1B 2F
//     rank 1   .. 0F .. 0B 0B 1F .. .. .. 1B 1B 2F      micro-batch 1 goes up the ranks

#include "schedule/registered.h"

namespace foretrace {
namespace {

class Gems final : public ScheduleRule {
 public:
  Schedule make() const override {
    Schedule schedule = empty_schedule("gems", *this);
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      const auto run = [&](ActionKind kind, std::int64_t i) {
        if (i < micro_batches)
          order.push_back(pass(kind, i % 2 == 0 ? rank : stages - 1 - rank, i, i % 2));
      };
      run(ActionKind::forward, 0);
      for (std::int64_t i = 0; i < micro_batches; ++i) {
        run(ActionKind::backward, i);
        run(ActionKind::forward, i + 1);
      }
      schedule.in_flight_limits.push_back(1);
    }
    // Both ranks of a stage must reduce in the same order, but their last passes differ in order.
    add_updates(schedule, false);
    return schedule;
  }
};

}  // namespace

std::unique_ptr<ScheduleRule> make_gems_schedule() { return std::make_unique<Gems>(); }

}  // namespace foretrace
