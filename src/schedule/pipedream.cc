// 1F1B without a flush, with an update after every backward pass (Narayanan et al. 2019, arXiv
// 1806.03377). A forward pass uses the newest weights of its stage, which are stashed until its
// backward pass: stage s of n lags n - 1 - s updates behind, and keeps up to n - s versions.

#include <algorithm>

#include "foretrace/error.h"
#include "schedule/registered.h"

namespace foretrace {
namespace {

class Pipedream final : public ScheduleRule {
 public:
  Schedule make() const override {
    Schedule schedule = empty_schedule("pipedream", *this);
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      const std::int64_t ahead = std::min(stages - 1 - rank, micro_batches);
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      std::int32_t updates = 0;
      std::vector<std::int32_t> stashed;
      for (Action action : one_f_one_b_order(rank, ahead, micro_batches)) {
        if (action.kind == ActionKind::forward) stashed.push_back(updates);
        action.version = stashed[static_cast<std::size_t>(action.micro_batch)];
        order.push_back(action);
        if (action.kind == ActionKind::forward) continue;
        order.push_back(pass(ActionKind::reduce, rank, 0));
        order.push_back(pass(ActionKind::update, rank, 0));
        order.back().version = ++updates;
      }
      schedule.in_flight_limits.push_back(
          static_cast<std::int32_t>(std::min(stages - rank, micro_batches)));
    }
    return schedule;
  }

  bool flushes() const override { return false; }
};

}  // namespace

std::unique_ptr<ScheduleRule> make_pipedream_schedule() { return std::make_unique<Pipedream>(); }

}  // namespace foretrace
