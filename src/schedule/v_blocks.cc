// V-Half and V-Min (Qi et al. 2024, arXiv 2405.15362): schedules made of one building block. Two
// chunks on each rank form a V. A micro-batch runs its four passes on rank r of p in these slots,
// and the next micro-batch runs six slots later, since a rank does six passes for each:
//
//     chunk    forward 0   forward 1    input gradient 1   input gradient 0
//     V-Min    r           2p - 1 - r   2p + i + r         4p - 1 + i - r     i = 2 if 3 divides p
//     V-Half   2r          3p - 2 - r   3p - 1 + j + 2r    6p - 2 + j - r     j = 3 if 2 divides p
//
// (i and j keep passes of different micro-batches apart; otherwise they are 0.) Weight gradients
// take the slots between. The memory depends on how long a chunk's activations live: about p/3
// micro-batches for V-Min, p/2 for V-Half. At the start and the end of a batch memory is free, and
// passes run earlier.

#include <algorithm>
#include <array>
#include <tuple>

#include "schedule/registered.h"

namespace foretrace {
namespace {

/// The passes of a building block in order; weight gradients are numbered over both chunks.
enum Step : std::uint8_t { forward_0, forward_1, input_1, input_0, weight, nothing };
constexpr std::int64_t kSteps = 4, kPeriod = 6;

bool is_forward(Step step) { return step == forward_0 || step == forward_1; }
bool is_input(Step step) { return step == input_0 || step == input_1; }

struct BuildingBlock {
  std::string_view name;
  std::array<std::int64_t, kSteps> (*slots)(std::int64_t rank, std::int64_t ranks);
  std::int64_t (*limit)(std::int64_t ranks);  ///< Limit on micro-batches in flight.
};

constexpr BuildingBlock kHalf{
    "v_half",
    [](std::int64_t r, std::int64_t p) {
      const std::int64_t apart = p % 2 == 0 ? 3 : 0;
      return std::array{2 * r, 3 * p - 2 - r, 3 * p - 1 + apart + 2 * r, 6 * p - 2 + apart - r};
    },
    [](std::int64_t p) { return (p + 2) / 2; }};
constexpr BuildingBlock kMin{
    "v_min",
    [](std::int64_t r, std::int64_t p) {
      const std::int64_t apart = p % 3 == 0 ? 2 : 0;
      return std::array{r, 2 * p - 1 - r, 2 * p + apart + r, 4 * p - 1 + apart - r};
    },
    [](std::int64_t p) { return (p + 4) / 3; }};

/// A pass in a slot of a rank.
struct SlotPass {
  Step step = nothing;
  std::int64_t number = 0;  ///< Micro-batch, or the number of the weight gradient on its rank.
};
/// The slots of one rank.
using RankSlots = std::vector<SlotPass>;

/// Puts weight gradients into free slots, in the order of their input gradients.
void add_weights(RankSlots& rank_slots) {
  std::int64_t waiting = 0, next = 0;
  for (SlotPass& slot_pass : rank_slots) {
    if (is_input(slot_pass.step)) ++waiting;
    if (slot_pass.step == nothing && waiting > 0) slot_pass = {weight, next++}, --waiting;
  }
  while (waiting-- > 0) rank_slots.push_back({weight, next++});
}

/// Returns the largest number of passes of a rank whose activations are kept until their weight
/// gradient. It counts the weight gradients in the line, or, if `has_weights` is false, those that
/// add_weights() would add.
std::int64_t peak(const RankSlots& rank_slots, bool has_weights) {
  std::int64_t kept = 0, most = 0, waiting = 0;
  for (const SlotPass& slot_pass : rank_slots) {
    if (is_forward(slot_pass.step)) most = std::max(most, ++kept);
    if (slot_pass.step == weight) --kept;
    if (has_weights) continue;
    if (is_input(slot_pass.step)) ++waiting;
    if (slot_pass.step == nothing && waiting > 0) --waiting, --kept;
  }
  return most;
}

class BlockBuilder {
 public:
  BlockBuilder(const BuildingBlock& block, std::int64_t ranks, std::int64_t micro_batches)
      : ranks_(ranks),
        micro_batches_(micro_batches),
        slots_by_rank_(static_cast<std::size_t>(ranks)) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto slots = block.slots(rank, ranks);
      rank_slots(rank).resize(static_cast<std::size_t>(slots.back() + kPeriod * micro_batches));
      for (std::size_t step = 0; step < kSteps; ++step) {
        for (std::int64_t i = 0; i < micro_batches; ++i)
          pass_at(rank, slots[step] + kPeriod * i) = {Step(step), i};
      }
    }
    for (std::size_t step = 0; step < slots_.size(); ++step) {
      const std::int64_t passes = step == weight ? 2 * micro_batches : micro_batches;
      slots_[step].resize(static_cast<std::size_t>(ranks * passes));
    }
  }

  /// Moves passes earlier twice: first together with the weight gradients, then without them. The
  /// weight gradients then fill the free slots again.
  std::vector<RankSlots> build() {
    for (RankSlots& slots : slots_by_rank_) add_weights(slots);
    run_earlier(true);
    remove_gaps();
    for (RankSlots& slots : slots_by_rank_) {
      for (SlotPass& slot_pass : slots) {
        if (slot_pass.step == weight) slot_pass = {};
      }
    }
    run_earlier(false);
    for (RankSlots& slots : slots_by_rank_) add_weights(slots);
    return std::move(slots_by_rank_);
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, Step, std::int64_t>;  ///< Slot, rank, pass.

  RankSlots& rank_slots(std::int64_t rank) {
    return slots_by_rank_[static_cast<std::size_t>(rank)];
  }
  SlotPass& pass_at(std::int64_t rank, std::int64_t slot) {
    return rank_slots(rank)[static_cast<std::size_t>(slot)];
  }
  std::int64_t& slot_of(std::int64_t rank, Step step, std::int64_t number) {
    const std::int64_t passes = step == weight ? 2 * micro_batches_ : micro_batches_;
    return slots_[step][static_cast<std::size_t>(rank * passes + number)];
  }

  /// Returns all passes in the order of their slots, and records the slots.
  std::vector<Key> passes_by_slot() {
    std::vector<Key> keys;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t slot = 0; slot < rank_slots(rank).size(); ++slot) {
        const SlotPass& slot_pass = rank_slots(rank)[slot];
        if (slot_pass.step == nothing) continue;
        keys.emplace_back(slot, rank, slot_pass.step, slot_pass.number);
        slot_of(rank, slot_pass.step, slot_pass.number) = static_cast<std::int64_t>(slot);
      }
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  /// Returns the last slot of the passes that a pass waits for, other than the one before it on its
  /// rank; -1 if there is none.
  std::int64_t last_wait_slot(std::int64_t rank, Step step, std::int64_t number) {
    std::int64_t last = number > 0 ? slot_of(rank, step, number - 1) : -1;
    if (step == weight) return std::max(last, slot_of_input(rank, number));
    const bool down = step == forward_0 || step == input_1;
    const std::int64_t before = down ? rank - 1 : rank + 1;
    if (before >= 0 && before < ranks_) last = std::max(last, slot_of(before, step, number));
    if (step != forward_0) last = std::max(last, slot_of(rank, Step(step - 1), number));
    return last;
  }

  /// Returns the slot of an input gradient, counted over both chunks.
  std::int64_t slot_of_input(std::int64_t rank, std::int64_t number) {
    const RankSlots& slots = rank_slots(rank);
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (is_input(slots[slot].step) && number-- == 0) return static_cast<std::int64_t>(slot);
    }
    return -1;
  }

  /// Moves passes that run before the first micro-batch has ended or after the last has begun to
  /// the first free slot that their waits, and the memory peak of the middle part, allow.
  void run_earlier(bool with_weights) {
    std::int64_t most = 0;
    for (const RankSlots& slots : slots_by_rank_) most = std::max(most, peak(slots, with_weights));
    enum { begin, middle, end } part = begin;
    for (const auto& [slot, rank, step, number] : passes_by_slot()) {
      if (part == begin && step == input_0 && rank == 0) part = middle;
      if (part == middle) {
        if (step == forward_0 && number + 1 == micro_batches_) part = end;
      } else if (part == end || with_weights) {
        move_earlier(slot, rank, {step, number}, with_weights, most);
      }
    }
  }

  void move_earlier(std::int64_t from, std::int64_t rank, const SlotPass& slot_pass,
                    bool with_weights, std::int64_t most) {
    pass_at(rank, from) = {};
    for (std::int64_t to = last_wait_slot(rank, slot_pass.step, slot_pass.number) + 1; to < from;
         ++to) {
      if (pass_at(rank, to).step != nothing) continue;
      pass_at(rank, to) = slot_pass;
      if (peak(rank_slots(rank), with_weights) <= most) {
        slot_of(rank, slot_pass.step, slot_pass.number) = to;
        return;
      }
      pass_at(rank, to) = {};
    }
    pass_at(rank, from) = slot_pass;
  }

  /// Removes slots in which a rank waits for nothing; the order is kept.
  void remove_gaps() {
    std::vector<RankSlots> compact(slots_by_rank_.size());
    for (const auto& [slot, rank, step, number] : passes_by_slot()) {
      RankSlots& slots = compact[static_cast<std::size_t>(rank)];
      const std::int64_t waits = step == weight ? -1 : last_wait_slot(rank, step, number);
      if (static_cast<std::int64_t>(slots.size()) <= waits)
        slots.resize(static_cast<std::size_t>(waits + 1));
      slot_of(rank, step, number) = static_cast<std::int64_t>(slots.size());
      slots.push_back({step, number});
    }
    slots_by_rank_ = std::move(compact);
  }

  std::int64_t ranks_, micro_batches_;
  std::vector<RankSlots> slots_by_rank_;
  std::array<std::vector<std::int64_t>, kSteps + 1> slots_;  ///< By step, then rank and number.
};

class VBlocks final : public ScheduleRule {
 public:
  explicit VBlocks(const BuildingBlock& block) : ScheduleRule(2), block_(block) {}

  Schedule make() const override {
    Schedule schedule = empty_schedule(block_.name, *this);
    schedule.splits_backward = true;
    const std::vector<RankSlots> slots_by_rank =
        BlockBuilder(block_, stages, micro_batches).build();
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      std::vector<Action> inputs;
      for (const SlotPass& slot_pass : slots_by_rank[static_cast<std::size_t>(rank)]) {
        if (slot_pass.step == nothing) continue;
        if (slot_pass.step == weight) {
          order.push_back(inputs[static_cast<std::size_t>(slot_pass.number)]);
          order.back().kind = ActionKind::weight_gradient;
          continue;
        }
        const bool first = slot_pass.step == forward_0 || slot_pass.step == input_0;
        const bool forward = is_forward(slot_pass.step);
        order.push_back(pass(forward ? ActionKind::forward : ActionKind::input_gradient,
                             stage_in_v(rank, first ? 0 : 1, stages), slot_pass.number));
        if (!forward) inputs.push_back(order.back());
      }
      schedule.in_flight_limits.push_back(static_cast<std::int32_t>(2 * block_.limit(stages)));
    }
    add_updates(schedule);
    return schedule;
  }

 private:
  const BuildingBlock& block_;
};

}  // namespace

std::unique_ptr<ScheduleRule> make_v_half_schedule() { return std::make_unique<VBlocks>(kHalf); }
std::unique_ptr<ScheduleRule> make_v_min_schedule() { return std::make_unique<VBlocks>(kMin); }

}  // namespace foretrace
