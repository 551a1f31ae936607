// 1F1B without a flush and with double-buffered weights (Narayanan et al. 2021, arXiv 2006.09503).
// The gradients of m micro-batches make one update. Micro-batch k, from 1 on, uses version
// max(floor((k - 1) / m) - 1, 0) in both passes, so that W(t+1) = W(t) - nu grad f(W(t-1)) and two
// versions suffice: m must be at least the number of stages.
// K batches take (K m + d - 1)(F + B); with a flush after each they would take K (m + d - 1)(F +
// B).

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "schedule/registered.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxBatches = 10'000;

class PipedreamTwoBw final : public ScheduleRule {
 public:
  void check() const override {
    if (micro_batches < stages)
      throw Error(fmt::format(
          "micro_batches: must be at least the number of stages, because two versions of the "
          "weights are not enough otherwise, got {} for {} stages",
          micro_batches, stages));
  }

  Schedule make() const override {
    check();
    Schedule schedule = empty_schedule("pipedream_2bw", *this);
    const std::int64_t all = batches_ * micro_batches;
    schedule.micro_batches = static_cast<std::int32_t>(all);
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      for (Action action : one_f_one_b_order(rank, stages - 1 - rank, all)) {
        const std::int64_t batch = action.micro_batch / micro_batches;
        action.version = static_cast<std::int32_t>(std::max<std::int64_t>(batch - 1, 0));
        order.push_back(action);
        const bool last = (action.micro_batch + 1) % micro_batches == 0;
        if (action.kind == ActionKind::forward || !last) continue;
        order.push_back(pass(ActionKind::reduce, rank, 0));
        order.push_back(pass(ActionKind::update, rank, 0));
        order.back().version = static_cast<std::int32_t>(batch + 1);
      }
      schedule.in_flight_limits.push_back(static_cast<std::int32_t>(stages - rank));
    }
    return schedule;
  }

  bool flushes() const override { return false; }

 protected:
  void describe_more(Fields& fields) override {
    fields.integer("batches", batches_, "Batches that follow each other without a flush", 1,
                   kMaxBatches);
  }

 private:
  std::int64_t batches_ = 4;
};

}  // namespace

std::unique_ptr<ScheduleRule> make_pipedream_2bw_schedule() {
  return std::make_unique<PipedreamTwoBw>();
}

}  // namespace foretrace
