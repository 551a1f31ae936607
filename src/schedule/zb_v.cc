// ZB-V (Qi et al. 2024, arXiv 2401.10241): two chunks on each rank in a V, so that the last stage
// is on rank 0 and backward passes begin there at once. With F = B = W no rank has a bubble, and
// the activations of p micro-batches are kept, as in 1F1B. The order does not depend on times:
//
//     2(p - r) - 1 times  F0            F0, F1: forward pass of the first, the second chunk
//     r times             F1 F0
//     p - r times         F1 I1 W1
//     until all are in    F0 I0 W0 F1 I1 W1
//     r times             I0 I1         input gradients first, which others wait for
//     p - r times         I0 W0, then the weight gradients that are left

#include <algorithm>
#include <array>

#include "schedule/registered.h"

namespace foretrace {
namespace {

class VOrder {
 public:
  VOrder(std::int64_t rank, std::int64_t ranks, std::int64_t micro_batches, Order& order)
      : rank_(rank), ranks_(ranks), micro_batches_(micro_batches), order_(order) {}

  void fill() {
    for (std::int64_t i = 0; i < 2 * (ranks_ - rank_) - 1; ++i) forward(0);
    for (std::int64_t i = 0; i < rank_; ++i) forward(1), forward(0);
    for (std::int64_t i = 0; i < ranks_ - rank_; ++i) forward(1), input(1), weight(1);
    while (forward_[1] < forward_[0] || forward_[0] < micro_batches_) {
      if (forward_[0] < micro_batches_) forward(0);
      input(0), weight(0);
      forward(1), input(1), weight(1);
    }
    for (std::int64_t i = 0; i < rank_; ++i) input(0), input(1);
    for (std::int64_t i = 0; i < ranks_ - rank_; ++i) input(0), weight(0);
    while (weight_[1] < input_[1]) weight(1);
    while (weight_[0] < input_[0]) weight(0);
  }

 private:
  void forward(std::size_t chunk) { run(ActionKind::forward, chunk, forward_[chunk]++); }
  void input(std::size_t chunk) { run(ActionKind::input_gradient, chunk, input_[chunk]++); }
  void weight(std::size_t chunk) { run(ActionKind::weight_gradient, chunk, weight_[chunk]++); }
  void run(ActionKind kind, std::size_t chunk, std::int64_t micro_batch) {
    const std::int64_t stage = stage_in_v(rank_, static_cast<std::int64_t>(chunk), ranks_);
    order_.push_back(pass(kind, stage, micro_batch));
  }

  std::int64_t rank_, ranks_, micro_batches_;
  Order& order_;
  std::array<std::int64_t, 2> forward_{}, input_{}, weight_{};
};

class ZbV final : public ScheduleRule {
 public:
  ZbV() : ScheduleRule(2) {}

  Schedule make() const override {
    Schedule schedule = empty_schedule("zb_v", *this);
    schedule.splits_backward = true;
    const std::int64_t needed = std::max(2 * stages - 1, micro_batches);
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      VOrder(rank, stages, needed, schedule.orders[static_cast<std::size_t>(rank)]).fill();
      schedule.in_flight_limits.push_back(static_cast<std::int32_t>(2 * stages));
    }
    drop_micro_batches(schedule, micro_batches);
    add_updates(schedule);
    return schedule;
  }
};

}  // namespace

std::unique_ptr<ScheduleRule> make_zb_v_schedule() { return std::make_unique<ZbV>(); }

}  // namespace foretrace
