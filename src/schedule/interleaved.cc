// 1F1B with v chunks on each rank: chunk c of rank r is stage c p + r (Narayanan et al. 2021, arXiv
// 2104.04473). Micro-batches pass through the chunks in groups of p or more:
//
//     p = 2, v = 2, group 3, 5 micro-batches:    micro-batches 0120123434    chunks 0001110011
//
// A rank runs 2(p - 1 - r) + (v - 1) group passes ahead. A batch takes m(F + B) + (p - 1)(F + B)/v
// for whole groups of p, where F and B are the times of all chunks of a rank together.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "schedule/registered.h"

namespace foretrace {
namespace {

class Interleaved1F1B final : public ScheduleRule {
 public:
  Interleaved1F1B() : ScheduleRule(2) {}

  void check() const override {
    if (group() < stages)
      throw Error(
          fmt::format("group: must be at least the number of stages, {}, got {}", stages, group_));
    const std::int64_t rest = micro_batches % group();
    if (chunks == 1 || rest == 0 || rest >= stages) return;
    throw Error(fmt::format(
        "micro_batches: must be a multiple of {}, or leave a remainder of at least the number of "
        "stages, because otherwise ranks deadlock, got {} for {} stages",
        group(), micro_batches, stages));
  }

  Schedule make() const override {
    check();
    Schedule schedule = empty_schedule("interleaved", *this);
    const std::vector<ForwardPass> passes = forward_passes();
    const auto all = static_cast<std::int64_t>(passes.size());
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      const std::int64_t ahead = std::min(2 * (stages - 1 - rank) + (chunks - 1) * group(), all);
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      for (std::int64_t i = 0; i < all + ahead; ++i) {
        if (i < all) {
          const ForwardPass& forward = passes[static_cast<std::size_t>(i)];
          order.push_back(
              pass(ActionKind::forward, forward.chunk * stages + rank, forward.micro_batch));
        }
        if (i >= ahead) {
          const ForwardPass& forward = passes[static_cast<std::size_t>(i - ahead)];
          const std::int64_t chunk = chunks - 1 - forward.chunk;
          order.push_back(pass(ActionKind::backward, chunk * stages + rank, forward.micro_batch));
        }
      }
      schedule.in_flight_limits.push_back(static_cast<std::int32_t>(std::min(ahead + 1, all)));
    }
    add_updates(schedule);
    return schedule;
  }

  bool serves_any_chunks() const override { return true; }

 protected:
  void describe_more(Fields& fields) override {
    fields.integer("group", group_,
                   "Micro-batches that pass through a chunk before the next one; 0: as many as "
                   "there are stages",
                   0);
  }

 private:
  struct ForwardPass {
    std::int64_t micro_batch, chunk;
  };

  std::int64_t group() const { return group_ == 0 ? stages : group_; }

  std::vector<ForwardPass> forward_passes() const {
    std::vector<ForwardPass> passes;
    for (std::int64_t first = 0; first < micro_batches; first += group()) {
      const std::int64_t end = std::min(first + group(), micro_batches);
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        for (std::int64_t i = first; i < end; ++i) passes.push_back({i, chunk});
      }
    }
    return passes;
  }

  std::int64_t group_ = 0;
};

}  // namespace

std::unique_ptr<ScheduleRule> make_interleaved_schedule() {
  return std::make_unique<Interleaved1F1B>();
}

}  // namespace foretrace
