// Handcrafted zero-bubble schedules (Qi et al. 2024, arXiv 2401.10241). The previous stage waits
// only for the input gradient; weight gradients fill bubbles. Rank r of p runs its input gradients
// h(p - 1 - r) slots and all its weight gradients h(p - 1) slots after the forward passes, with
// each pass taking one slot:
//
//     H1 (h = 1): bubble (p - 1)(F + B - W), p - r micro-batches in flight
//     H2 (h = 2): bubble (p - 1)(F + B - 2W), 2(p - r) - 1 in flight

#include <algorithm>

#include "schedule/registered.h"

namespace foretrace {
namespace {

class ZeroBubble final : public ScheduleRule {
 public:
  ZeroBubble(std::string_view name, std::int64_t lead) : name_(name), lead_(lead) {}

  Schedule make() const override {
    Schedule schedule = empty_schedule(name_, *this);
    schedule.splits_backward = true;
    const std::int64_t weight_lag = lead_ * (stages - 1);
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      const std::int64_t input_lag = lead_ * (stages - 1 - rank);
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      const auto run = [&](ActionKind kind, std::int64_t i) {
        if (i >= 0 && i < micro_batches) order.push_back(pass(kind, rank, i));
      };
      for (std::int64_t slot = 0; slot < micro_batches + weight_lag; ++slot) {
        run(ActionKind::forward, slot);
        run(ActionKind::input_gradient, slot - input_lag);
        run(ActionKind::weight_gradient, slot - weight_lag);
      }
      schedule.in_flight_limits.push_back(
          static_cast<std::int32_t>(std::min(input_lag + 1, micro_batches)));
    }
    add_updates(schedule);
    return schedule;
  }

 private:
  std::string_view name_;
  std::int64_t lead_;
};

}  // namespace

std::unique_ptr<ScheduleRule> make_zb_h1_schedule() {
  return std::make_unique<ZeroBubble>("zb_h1", 1);
}
std::unique_ptr<ScheduleRule> make_zb_h2_schedule() {
  return std::make_unique<ZeroBubble>("zb_h2", 2);
}

}  // namespace foretrace
