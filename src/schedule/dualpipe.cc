// DualPipe and DualPipeV (DeepSeek-AI 2025, github.com/deepseek-ai/DualPipe). Each rank has two
// parts of the model: the same stage of both directions, or in DualPipeV two chunks in a V. Forward
// passes of one part and backward passes of the other run in overlapped pairs. Each rank r runs
// eight steps, where H is the number of ranks of one side (p/2; p in a V), n the micro-batches of
// one side, and 0 the part that is ahead:
//
//     1  2(H-r-1) F0      3  H-r-1 (I1 W F1)              5  H-r-1 (B1 F1+B0)      7  H-r-1 (W I0)
//     2  r+1 (F0 F1)      4  n-2H+r+1 (F0+B1 F1+B0)       6  r+1 (B1 B0)           8  r+1 W
//
// The second half of step 6 splits its backward passes. Results are sent when the next
// communication begins: the results of a forward pass in a pair, and some in step 2, are held back
// until the next pass. Bubble: (p/2 - 1)(F&B + B - 3W), with F&B the time of a pair and B a whole
// backward pass.

#include <algorithm>
#include <array>
#include <deque>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "schedule/registered.h"

namespace foretrace {
namespace {

/// The position of a rank: its distance from the outer end, and the stage and pipeline of its two
/// parts.
struct RankPosition {
  std::int64_t depth = 0;   ///< 0 at the outer ends.
  std::int64_t side = 0;    ///< Number of ranks of one side.
  std::int64_t passes = 0;  ///< Number of micro-batches of one side.
  bool in_v = false;
  std::array<std::int64_t, 2> stage{}, pipeline{}, first{};
  std::int64_t stride = 1;  ///< Distance between successive micro-batches of a pipeline.
};

class DualOrder {
 public:
  DualOrder(const RankPosition& position, Order& order) : position_(position), order_(order) {}

  void fill() {
    const std::int64_t outer = position_.side - position_.depth - 1, inner = position_.depth + 1;
    const bool middle = outer == 0;
    for (std::int64_t i = 0; i < 2 * outer; ++i) forward(0);
    for (std::int64_t i = 0; i < inner; ++i) {
      forward(0, position_.in_v || !middle);
      forward(1, middle && i + 1 == inner);
    }
    for (std::int64_t i = 0; i < outer; ++i) split(1), weight(), forward(1);
    for (std::int64_t i = 0; i < position_.passes - 2 * position_.side + inner; ++i) {
      if (i == 0 && middle) {
        forward(0, true), backward(1);
      } else {
        pair(0, 1);
      }
      pair(1, 0);
    }
    for (std::int64_t i = 0; i < outer; ++i) backward(1), pair(1, 0);
    for (std::int64_t i = 0; i < 2 * inner; ++i) {
      const std::size_t part = i % 2 == 0 ? 1 : 0;
      if (i < inner) {
        backward(part);
      } else {
        split(part);
      }
    }
    for (std::int64_t i = 0; i < outer; ++i) weight(), split(0);
    for (std::int64_t i = 0; i < inner; ++i) weight();
  }

 private:
  void add(ActionKind kind, std::size_t part, std::int64_t turn) {
    order_.push_back(pass(kind, position_.stage[part],
                          position_.first[part] + turn * position_.stride,
                          position_.pipeline[part]));
  }
  void forward(std::size_t part, bool sends_late = false) {
    add(ActionKind::forward, part, forward_[part]++);
    order_.back().sends_late = sends_late;
  }
  void backward(std::size_t part) { add(ActionKind::backward, part, backward_[part]++); }
  void split(std::size_t part) {
    add(ActionKind::input_gradient, part, backward_[part]++);
    weights_.push_back(order_.back());
    weights_.back().kind = ActionKind::weight_gradient;
  }
  void weight() {
    order_.push_back(weights_.front());
    weights_.pop_front();
  }
  void pair(std::size_t ahead, std::size_t behind) {
    forward(ahead, true);
    order_.back().overlaps_next = true;
    backward(behind);
  }

  const RankPosition& position_;
  Order& order_;
  std::array<std::int64_t, 2> forward_{}, backward_{};
  std::deque<Action> weights_;  ///< Weight gradients still to run.
};

class DualPipe final : public ScheduleRule {
 public:
  void check() const override {
    if (stages % 2 != 0)
      throw Error(fmt::format(
          "stages: must be even for dualpipe, as each rank has a partner in the other half, got {}",
          stages));
    if (micro_batches % 2 != 0 || micro_batches < 2 * stages)
      throw Error(
          fmt::format("micro_batches: must be even and at least twice the stages for dualpipe, got "
                      "{} for {} stages",
                      micro_batches, stages));
  }

  Schedule make() const override {
    check();
    Schedule schedule = empty_schedule("dualpipe", *this);
    schedule.splits_backward = true;
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      const std::int64_t mirrored = stages - 1 - rank, up = rank < mirrored ? 0 : 1;
      // Pipeline 0 goes down and takes the even micro-batches.
      const RankPosition position{.depth = std::min(rank, mirrored),
                                  .side = stages / 2,
                                  .passes = micro_batches / 2,
                                  .stage = {up == 0 ? rank : mirrored, up == 0 ? mirrored : rank},
                                  .pipeline = {up, 1 - up},
                                  .first = {up, 1 - up},
                                  .stride = 2};
      DualOrder(position, schedule.orders[static_cast<std::size_t>(rank)]).fill();
      schedule.in_flight_limits.push_back(static_cast<std::int32_t>(stages + 1));
    }
    add_updates(schedule);
    return schedule;
  }
};

class DualPipeV final : public ScheduleRule {
 public:
  DualPipeV() : ScheduleRule(2) {}

  void check() const override {
    if (micro_batches < 2 * stages)
      throw Error(fmt::format(
          "micro_batches: must be at least twice the stages for dualpipe_v, got {} for {} stages",
          micro_batches, stages));
  }

  Schedule make() const override {
    check();
    Schedule schedule = empty_schedule("dualpipe_v", *this);
    schedule.splits_backward = true;
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      const RankPosition position{.depth = rank,
                                  .side = stages,
                                  .passes = micro_batches,
                                  .in_v = true,
                                  .stage = {rank, stage_in_v(rank, 1, stages)}};
      DualOrder(position, schedule.orders[static_cast<std::size_t>(rank)]).fill();
      schedule.in_flight_limits.push_back(static_cast<std::int32_t>(2 * stages + 1));
    }
    add_updates(schedule);
    return schedule;
  }
};

}  // namespace

std::unique_ptr<ScheduleRule> make_dualpipe_schedule() { return std::make_unique<DualPipe>(); }
std::unique_ptr<ScheduleRule> make_dualpipe_v_schedule() { return std::make_unique<DualPipeV>(); }

}  // namespace foretrace
