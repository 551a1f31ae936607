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

struct Block {
  std::string_view name;
  std::array<std::int64_t, kSteps> (*slots)(std::int64_t rank, std::int64_t ranks);
  std::int64_t (*limit)(std::int64_t ranks);  ///< Limit on micro-batches in flight.
};

constexpr Block kHalf{
    "v_half",
    [](std::int64_t r, std::int64_t p) {
      const std::int64_t apart = p % 2 == 0 ? 3 : 0;
      return std::array{2 * r, 3 * p - 2 - r, 3 * p - 1 + apart + 2 * r, 6 * p - 2 + apart - r};
    },
    [](std::int64_t p) { return (p + 2) / 2; }};
constexpr Block kMin{
    "v_min",
    [](std::int64_t r, std::int64_t p) {
      const std::int64_t apart = p % 3 == 0 ? 2 : 0;
      return std::array{r, 2 * p - 1 - r, 2 * p + apart + r, 4 * p - 1 + apart - r};
    },
    [](std::int64_t p) { return (p + 4) / 3; }};

/// A pass in a slot of a rank.
struct Turn {
  Step step = nothing;
  std::int64_t number = 0;  ///< Micro-batch, or the number of the weight gradient on its rank.
};
/// The slots of one rank.
using Line = std::vector<Turn>;

/// Puts weight gradients into free slots, in the order of their input gradients.
void add_weights(Line& line) {
  std::int64_t waiting = 0, next = 0;
  for (Turn& turn : line) {
    if (is_input(turn.step)) ++waiting;
    if (turn.step == nothing && waiting > 0) turn = {weight, next++}, --waiting;
  }
  while (waiting-- > 0) line.push_back({weight, next++});
}

/// Returns the largest number of passes of a rank whose activations are kept until their weight
/// gradient. It counts the weight gradients in the line, or, if `has_weights` is false, those that
/// add_weights() would add.
std::int64_t peak(const Line& line, bool has_weights) {
  std::int64_t kept = 0, most = 0, waiting = 0;
  for (const Turn& turn : line) {
    if (is_forward(turn.step)) most = std::max(most, ++kept);
    if (turn.step == weight) --kept;
    if (has_weights) continue;
    if (is_input(turn.step)) ++waiting;
    if (turn.step == nothing && waiting > 0) --waiting, --kept;
  }
  return most;
}

class Building {
 public:
  Building(const Block& block, std::int64_t ranks, std::int64_t micro_batches)
      : ranks_(ranks), micro_batches_(micro_batches), lines_(static_cast<std::size_t>(ranks)) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto slots = block.slots(rank, ranks);
      line(rank).resize(static_cast<std::size_t>(slots.back() + kPeriod * micro_batches));
      for (std::size_t step = 0; step < kSteps; ++step) {
        for (std::int64_t i = 0; i < micro_batches; ++i)
          turn_at(rank, slots[step] + kPeriod * i) = {Step(step), i};
      }
    }
    for (std::size_t step = 0; step < slots_.size(); ++step) {
      const std::int64_t passes = step == weight ? 2 * micro_batches : micro_batches;
      slots_[step].resize(static_cast<std::size_t>(ranks * passes));
    }
  }

  /// Moves passes earlier twice: first together with the weight gradients, then without them. The
  /// weight gradients then fill the free slots again.
  std::vector<Line> lines() {
    for (Line& one : lines_) add_weights(one);
    run_earlier(true);
    close_up();
    for (Line& one : lines_) {
      for (Turn& turn : one) {
        if (turn.step == weight) turn = {};
      }
    }
    run_earlier(false);
    for (Line& one : lines_) add_weights(one);
    return std::move(lines_);
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, Step, std::int64_t>;  ///< Slot, rank, pass.

  Line& line(std::int64_t rank) { return lines_[static_cast<std::size_t>(rank)]; }
  Turn& turn_at(std::int64_t rank, std::int64_t slot) {
    return line(rank)[static_cast<std::size_t>(slot)];
  }
  std::int64_t& slot_of(std::int64_t rank, Step step, std::int64_t number) {
    const std::int64_t passes = step == weight ? 2 * micro_batches_ : micro_batches_;
    return slots_[step][static_cast<std::size_t>(rank * passes + number)];
  }

  /// Returns all passes in the order of their slots, and records the slots.
  std::vector<Key> in_order() {
    std::vector<Key> keys;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      for (std::size_t slot = 0; slot < line(rank).size(); ++slot) {
        const Turn& turn = line(rank)[slot];
        if (turn.step == nothing) continue;
        keys.emplace_back(slot, rank, turn.step, turn.number);
        slot_of(rank, turn.step, turn.number) = static_cast<std::int64_t>(slot);
      }
    }
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  /// Returns the last slot of the passes that a pass waits for, other than the one before it on its
  /// rank; -1 if there is none.
  std::int64_t ready(std::int64_t rank, Step step, std::int64_t number) {
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
    const Line& own = line(rank);
    for (std::size_t slot = 0; slot < own.size(); ++slot) {
      if (is_input(own[slot].step) && number-- == 0) return static_cast<std::int64_t>(slot);
    }
    return -1;
  }

  /// Moves passes that run before the first micro-batch has ended or after the last has begun to
  /// the first free slot that their waits, and the memory peak of the middle part, allow.
  void run_earlier(bool with_weights) {
    std::int64_t most = 0;
    for (const Line& one : lines_) most = std::max(most, peak(one, with_weights));
    enum { begin, middle, end } part = begin;
    for (const auto& [slot, rank, step, number] : in_order()) {
      if (part == begin && step == input_0 && rank == 0) part = middle;
      if (part == middle) {
        if (step == forward_0 && number + 1 == micro_batches_) part = end;
      } else if (part == end || with_weights) {
        move_earlier(slot, rank, {step, number}, with_weights, most);
      }
    }
  }

  void move_earlier(std::int64_t from, std::int64_t rank, const Turn& turn, bool with_weights,
                    std::int64_t most) {
    turn_at(rank, from) = {};
    for (std::int64_t to = ready(rank, turn.step, turn.number) + 1; to < from; ++to) {
      if (turn_at(rank, to).step != nothing) continue;
      turn_at(rank, to) = turn;
      if (peak(line(rank), with_weights) <= most) {
        slot_of(rank, turn.step, turn.number) = to;
        return;
      }
      turn_at(rank, to) = {};
    }
    turn_at(rank, from) = turn;
  }

  /// Removes slots in which a rank waits for nothing; the order is kept.
  void close_up() {
    std::vector<Line> closed(lines_.size());
    for (const auto& [slot, rank, step, number] : in_order()) {
      Line& own = closed[static_cast<std::size_t>(rank)];
      const std::int64_t waits = step == weight ? -1 : ready(rank, step, number);
      if (static_cast<std::int64_t>(own.size()) <= waits)
        own.resize(static_cast<std::size_t>(waits + 1));
      slot_of(rank, step, number) = static_cast<std::int64_t>(own.size());
      own.push_back({step, number});
    }
    lines_ = std::move(closed);
  }

  std::int64_t ranks_, micro_batches_;
  std::vector<Line> lines_;
  std::array<std::vector<std::int64_t>, kSteps + 1> slots_;  ///< By step, then rank and number.
};

class VBlocks final : public ScheduleRule {
 public:
  explicit VBlocks(const Block& block) : block_(block) {}

  Schedule make() const override {
    Schedule schedule = empty_schedule(block_.name, *this, 2);
    schedule.splits_backward = true;
    const std::vector<Line> lines = Building(block_, stages, micro_batches).lines();
    for (std::int64_t rank = 0; rank < stages; ++rank) {
      Order& order = schedule.orders[static_cast<std::size_t>(rank)];
      std::vector<Action> inputs;
      for (const Turn& turn : lines[static_cast<std::size_t>(rank)]) {
        if (turn.step == nothing) continue;
        if (turn.step == weight) {
          order.push_back(inputs[static_cast<std::size_t>(turn.number)]);
          order.back().kind = ActionKind::weight_gradient;
          continue;
        }
        const bool first = turn.step == forward_0 || turn.step == input_0;
        const bool forward = is_forward(turn.step);
        order.push_back(pass(forward ? ActionKind::forward : ActionKind::input_gradient,
                             stage_in_v(rank, first ? 0 : 1, stages), turn.number));
        if (!forward) inputs.push_back(order.back());
      }
      schedule.in_flight_limits.push_back(static_cast<std::int32_t>(2 * block_.limit(stages)));
    }
    add_updates(schedule);
    return schedule;
  }

 private:
  const Block& block_;
};

}  // namespace

std::unique_ptr<ScheduleRule> make_v_half_schedule() { return std::make_unique<VBlocks>(kHalf); }
std::unique_ptr<ScheduleRule> make_v_min_schedule() { return std::make_unique<VBlocks>(kMin); }

}  // namespace foretrace
