// Pipelines in both directions over the same D workers (Li, Hoefler 2021, arXiv 2107.06925). A unit
// is D micro-batches, divided among f pipelines down and f pipelines up; pipeline i starts at
// worker i D/f. If every pass takes one slot, stage s of a pipeline runs its micro-batch m of the
// unit
//
//     forward in slot s + 2m,  backward in slot 2D - 1 - s + 2m,
//
// and no two passes of a worker collide, nor do those of the next unit, which starts 2D slots later
// (direct concatenation). With other durations this order is kept. For D=4, f=1, the passes of
// worker 0 are (a, b: down and up)
//
//     aF0 . aF1 bF0 . bF1 . bB0 aB0 bB1 aB1     up goes from the last worker to the first
//
// doubling: a forward slot holds two micro-batches, as a backward pass takes about twice as long; a
// unit is 2D micro-batches and 3D slots. halving: a backward slot holds half a micro-batch instead.
// With more than two pipelines slots then collide, and the colliding passes run in sequence.
//
// A worker starts the all-reduce of its late stages before its last backward passes, which hide it,
// and the all-reduce of its other stages at the end (eager-sync-opt in the authors' program).

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "schedule/registered.h"

namespace foretrace {
namespace {

/// A pass and its slot.
struct Slot {
  std::int64_t slot = 0;
  Action action;
};

/// A unit: its number of micro-batches, its first micro-batch, and its first slot.
struct Unit {
  std::int64_t micro_batches = 0, first = 0, begin = 0;
  bool uneven = false;  ///< Uses doubling or halving.
};

class Chimera final : public ScheduleRule {
 public:
  void check() const override {
    if (stages % 2 != 0)
      throw Error(fmt::format(
          "stages: must be even for chimera, as half of the pipelines go the other way, got {}",
          stages));
    if (stages / 2 % pairs_ != 0)
      throw Error(
          fmt::format("pairs: must divide half the stages, {}, got {}", stages / 2, pairs_));
  }

  Schedule make() const override {
    check();
    Schedule schedule = empty_schedule("chimera", *this);
    std::vector<std::vector<Slot>> slots(schedule.orders.size());
    for (const Unit& unit : units()) {
      for (std::int64_t i = 0; i < unit.micro_batches; ++i) add_passes(unit, i, slots);
    }
    for (std::size_t rank = 0; rank < slots.size(); ++rank) {
      std::stable_sort(slots[rank].begin(), slots[rank].end(),
                       [](const Slot& a, const Slot& b) { return a.slot < b.slot; });
      for (const Slot& slot : slots[rank]) schedule.orders[rank].push_back(slot.action);
      schedule.in_flight_limits.push_back(limit(static_cast<std::int64_t>(rank)));
    }
    add_eager_updates(schedule);
    return schedule;
  }

 protected:
  void describe_more(Fields& fields) override {
    fields.integer("pairs", pairs_, "Pipelines in each direction; must divide half the stages", 1);
    static const std::vector<std::string_view> units = {"direct", "doubling", "halving"};
    fields.choice(
        "units", units_, units,
        "How units of micro-batches follow each other if there are more micro-batches than "
        "stages: direct; doubling of forward passes; halving of backward passes");
  }

 private:
  /// Returns as many large units as fit, then a direct one for the remaining micro-batches.
  std::vector<Unit> units() const {
    const bool doubles = units_ == "doubling";
    const std::int64_t size = doubles ? 2 * stages : stages;
    std::vector<Unit> all;
    std::int64_t first = 0, begin = 0;
    while (first < micro_batches) {
      Unit unit{std::min(size, micro_batches - first), first, begin, units_ != "direct"};
      if (doubles && unit.micro_batches < size) {
        unit.micro_batches = std::min(stages, unit.micro_batches);
        unit.uneven = false;
      }
      all.push_back(unit);
      first += unit.micro_batches;
      begin += unit.uneven ? 3 * stages : 2 * stages;
    }
    return all;
  }

  /// Puts the passes of micro-batch `i` of a unit into their slots.
  void add_passes(const Unit& unit, std::int64_t i, std::vector<std::vector<Slot>>& slots) const {
    const std::int64_t pipelines = 2 * pairs_, pipeline = i % pipelines, round = i / pipelines;
    const bool halves = unit.uneven && units_ == "halving";
    const std::int64_t forward_round = unit.uneven && !halves ? round / 2 : round;
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      auto& worker = slots[static_cast<std::size_t>(worker_of(pipeline, stage))];
      const auto add = [&](ActionKind kind, std::int64_t slot, std::uint8_t half) {
        worker.push_back({unit.begin + slot, pass(kind, stage, unit.first + i, pipeline)});
        worker.back().action.half = half;
      };
      add(ActionKind::forward, stage + 2 * forward_round, 0);
      const std::int64_t backward = 2 * stages - 1 - stage;
      if (!halves) {
        add(ActionKind::backward, backward + 2 * round, 0);
      } else {
        add(ActionKind::backward, backward + 4 * round, 1);
        add(ActionKind::backward, backward + 4 * round + 2, 2);
      }
    }
  }

  std::int64_t worker_of(std::int64_t pipeline, std::int64_t stage) const {
    const std::int64_t down = (pipeline / 2 * (stages / pairs_) + stage) % stages;
    return pipeline % 2 == 0 ? down : stages - 1 - down;
  }

  std::int32_t limit(std::int64_t rank) const {
    const std::int64_t apart = stages / pairs_, at = rank % apart;
    const std::int64_t least = stages - apart / 2 + 1 + std::min(at, apart - 1 - at);
    const std::int64_t doubled = units_ == "direct" ? 0 : stages;
    // With more than two pipelines, colliding passes of doubled units may all come first.
    const std::int64_t most = doubled > 0 && pairs_ > 1 ? 2 * stages : least + doubled;
    return static_cast<std::int32_t>(std::min(most, micro_batches));
  }

  /// All workers of a stage reduce in the same order: late stages first. With equally many
  /// micro-batches in both directions, the stages also complete in this order.
  void add_eager_updates(Schedule& schedule) const {
    add_updates(schedule);
    for (Order& order : schedule.orders) {
      std::vector<Action> reductions;
      for (const Action& action : order) {
        if (action.kind == ActionKind::reduce) reductions.push_back(action);
      }
      std::sort(reductions.begin(), reductions.end(),
                [](const Action& a, const Action& b) { return a.stage > b.stage; });
      order = with_reductions(order, reductions);
    }
  }

  Order with_reductions(const Order& order, const std::vector<Action>& reductions) const {
    Order merged;
    auto next = reductions.begin();
    std::vector<std::int32_t> complete;
    const auto is_complete = [&](std::int32_t stage) {
      return std::find(complete.begin(), complete.end(), stage) != complete.end();
    };
    for (const Action& action : order) {
      if (action.kind == ActionKind::update && next != reductions.end()) {
        merged.insert(merged.end(), next, reductions.end());
        next = reductions.end();
      }
      if (action.kind != ActionKind::reduce) {
        merged.push_back(action);
        continue;
      }
      complete.push_back(action.stage);
      for (; next != reductions.end() && next->stage > stages / 2 && is_complete(next->stage);
           ++next)
        merged.push_back(*next);
    }
    return merged;
  }

  std::int64_t pairs_ = 1;
  std::string units_ = "direct";
};

}  // namespace

std::unique_ptr<ScheduleRule> make_chimera_schedule() { return std::make_unique<Chimera>(); }

}  // namespace foretrace
