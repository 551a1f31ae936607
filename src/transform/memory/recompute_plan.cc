#include "transform/memory/recompute_plan.h"

#include <algorithm>

namespace foretrace {
namespace {

constexpr std::size_t kMaxWork = 20'000;  // Limit on the tasks to repeat for one block.
constexpr std::size_t kMaxWorkInAll =
    5'000'000;  // Limit over all blocks, so that costs are cheap to compute.

bool can_run_again(TaskKind kind) {
  switch (kind) {
    case TaskKind::kernel:
    case TaskKind::collective:
    case TaskKind::copy_on_device:
    case TaskKind::fill:
    case TaskKind::host:
      return true;
    default:
      return false;
  }
}

/// Whether a block of this use is written outside the forward pass and not overwritten by it.
bool persists(MemoryUse use) {
  return use == MemoryUse::parameter || use == MemoryUse::gradient ||
         use == MemoryUse::optimizer_state || use == MemoryUse::input;
}

/// Collects the work that is needed, unit by unit in order of time.
class Planner {
 public:
  Planner(const MemoryView& view, const ForwardSegments* segments)
      : view_(view),
        segments_(segments),
        dropped_(view.graph.allocations().size(), 0),
        state_(view.graph.allocations().size(), State::untouched),
        copied_(view.graph.task_count(), 0) {}

  void drop(const Activation& activation) {
    plan_.dropped.push_back(activation);
    dropped_[activation.allocation] = 1;
  }

  RecomputePlan run() {
    std::vector<Activation> order = plan_.dropped;
    std::sort(order.begin(), order.end(), [&](const Activation& a, const Activation& b) {
      if (a.first_backward != b.first_backward)
        return view_.before(a.first_backward, b.first_backward);
      return a.allocation < b.allocation;
    });
    for (const Activation& activation : order) {
      if (state_[activation.allocation] == State::restored) continue;
      plan_.units.push_back(unit_for(activation));
    }
    free_segments();
    return std::move(plan_);
  }

  /// Returns the cost of dropping `activation` alone. Resets the planner afterwards.
  RecomputeCost cost_of(const Activation& activation) {
    RecomputeCost cost;
    dropped_[activation.allocation] = 1;
    RecomputeUnit unit = unit_for(activation);
    cost.possible = possible_ && !unit.work.empty() && unit.work.size() < kMaxWork;
    for (const auto& [block, task] : plan_.kept_until) cost.kept += view_.block(block).bytes;
    for (const TaskId task : unit.work) copied_[index(task)] = 0;
    for (const std::uint32_t block : touched_) state_[block] = State::untouched;
    touched_.clear();
    plan_ = {};
    dropped_[activation.allocation] = 0;
    cost.work = std::move(unit.work);
    return cost;
  }

 private:
  enum class State : std::uint8_t { untouched, restored, temporary, kept };

  RecomputeUnit unit_for(const Activation& activation) {
    unit_ = {.before = activation.first_backward};
    possible_ = true;
    segment_ = kNoSegment;
    open_.clear();
    restore(activation.allocation);
    while (!open_.empty() && unit_.work.size() < kMaxWork) {
      const TaskId task = open_.back();
      open_.pop_back();
      for (const Access& access : view_.uses.of_task(task)) {
        if (!access.writes || reads_too(access)) provide(access.allocation, task);
      }
    }
    std::sort(unit_.work.begin(), unit_.work.end(),
              [&](TaskId a, TaskId b) { return view_.before(a, b); });
    for (const TaskId task : unit_.work) extend_lifetimes(task);
    unit_.segment = segment_;
    return std::move(unit_);
  }

  void free_segments() {
    std::map<std::int32_t, TaskId> last_of;
    for (const RecomputeUnit& unit : plan_.units) {
      if (unit.segment == kNoSegment) continue;
      for (const std::uint32_t block : unit.restored) {
        const TaskId last = view_.uses.of_block(block).back().task;
        const auto [at, added] = last_of.try_emplace(unit.segment, last);
        if (!added && view_.before(at->second, last)) at->second = last;
      }
    }
    for (const RecomputeUnit& unit : plan_.units) {
      if (unit.segment == kNoSegment) continue;
      const TaskId last = last_of.at(unit.segment);
      for (const std::uint32_t block : unit.restored) {
        const TaskId side = allocating_task(view_.graph, view_.launches, view_.block(block), last);
        if (exists_at(block, view_.timeline.finish[index(side)]))
          plan_.freed_with_segment[block] = last;
      }
    }
  }

  void set(std::uint32_t block, State state) {
    if (state_[block] == State::untouched) touched_.push_back(block);
    state_[block] = state;
  }

  void restore(std::uint32_t block) {
    set(block, State::restored);
    unit_.restored.push_back(block);
    const std::size_t before = unit_.work.size();
    repeat_writers(block, unit_.before, true);
    if (unit_.work.size() == before && !was_copied(block)) possible_ = false;
  }

  bool was_copied(std::uint32_t block) const {
    const auto accesses = view_.uses.of_block(block);
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return access.writes && copied_[index(access.task)] != 0;
    });
  }

  /// Makes sure that `task` finds what it reads when it runs again.
  void provide(std::uint32_t block, TaskId task) {
    switch (state_[block]) {
      case State::restored:
      case State::kept:
        return;
      case State::temporary:
        repeat_writers(block, task, false);
        return;
      case State::untouched:
        break;
    }
    if (dropped_[block] != 0) return restore(block);
    if (exists_at_unit(block) && !is_overwritten(block, task)) return;
    if (repeat_writers(block, task, false)) return set(block, State::temporary);
    set(block, State::kept);
    plan_.kept_until[block] = task;
  }

  /// Whether the block is still there when the unit runs.
  bool exists_at_unit(std::uint32_t number) const {
    return exists_at(number, view_.start(allocating_task(view_.graph, view_.launches,
                                                         view_.block(number), unit_.before)));
  }

  bool exists_at(std::uint32_t number, Nanoseconds time) const {
    const Allocation& block = view_.block(number);
    if (block.freed_by == kNoTask) return true;
    const Nanoseconds start = view_.start(block.freed_by);
    const Nanoseconds length = view_.timeline.finish[index(block.freed_by)] - start;
    return start + std::clamp(block.freed_after, 0ns, length) > time;
  }

  /// Whether the forward pass wrote the block again after `task` had read it.
  bool is_overwritten(std::uint32_t block, TaskId task) const {
    if (persists(view_.block(block).use)) return false;
    const auto accesses = view_.uses.of_block(block);
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return access.writes && is_forward(access.task) && !view_.before(access.task, task);
    });
  }

  bool is_forward(TaskId task) const {
    return !view_.is_late(task) && view_.before(task, unit_.before);
  }

  /// Whether the task that writes the block also reads it, and so only changes its content.
  bool reads_too(const Access& access) const {
    const auto accesses = view_.uses.of_task(access.task);
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& other) {
      return other.allocation == access.allocation && !other.writes;
    });
  }

  /// Repeats the tasks that wrote the block before `until`. Returns false if there is none, or if
  /// one of them may not be repeated; with `must`, the latter makes the unit impossible.
  bool repeat_writers(std::uint32_t block, TaskId until, bool must) {
    bool any = false;
    std::vector<TaskId> writers;
    for (const Access& access : view_.uses.of_block(block)) {
      if (!access.writes || !is_forward(access.task) || view_.before(until, access.task)) continue;
      if (access.task == until && !must) continue;
      if (!may_run(access.task)) {
        if (must) possible_ = false;
        return false;
      }
      any = true;
      writers.push_back(access.task);
    }
    for (const TaskId task : writers) add(task);
    return any;
  }

  bool may_run(TaskId task) {
    if (!can_run_again(view_.graph.task(task).kind)) return false;
    const Lane& from = view_.graph.lane(view_.graph.lane_of(task));
    const Lane& to = view_.graph.lane(view_.graph.lane_of(unit_.before));
    if (from.device != to.device || from.rank != to.rank) return false;
    if (segments_ == nullptr) return true;
    const std::int32_t own = segments_->segment[index(task)];
    if (segment_ == kNoSegment) segment_ = own;
    return own == segment_;
  }

  void add(TaskId task) {
    if (copied_[index(task)] != 0) return;
    copied_[index(task)] = 1;
    unit_.work.push_back(task);
    open_.push_back(task);
  }

  /// Notes that the blocks that the copy of `task` uses must exist then, if they do not anyway.
  void extend_lifetimes(TaskId task) {
    for (const Access& access : view_.uses.of_task(task)) {
      const std::uint32_t block = access.allocation;
      switch (state_[block]) {
        case State::restored:
          if (!exists_at_unit(block)) plan_.kept_for_copy[block] = task;
          continue;
        case State::kept:
          if (!access.writes) plan_.kept_until[block] = task;
          break;
        case State::untouched:
          if (!access.writes || persists(view_.block(block).use)) continue;
          set(block, State::temporary);
          break;
        case State::temporary:
          break;
      }
      // If the writer of a kept block runs again, it writes to another block.
      if (state_[block] == State::kept && !access.writes) continue;
      ExtraLifetime& life = plan_.temporaries[block];
      if (life.first == kNoTask) life.first = task;
      life.last = task;
    }
  }

  const MemoryView& view_;
  const ForwardSegments* segments_;
  std::vector<char> dropped_;
  std::vector<State> state_;
  std::vector<char> copied_;
  std::vector<std::uint32_t> touched_;  ///< Blocks whose state is not `untouched`.
  std::vector<TaskId> open_;
  RecomputePlan plan_;
  RecomputeUnit unit_;
  std::int32_t segment_ = kNoSegment;
  bool possible_ = true;
};

}  // namespace

RecomputePlan plan_recompute(const MemoryView& view, const std::vector<Activation>& dropped,
                             const ForwardSegments* segments) {
  Planner planner(view, segments);
  for (const Activation& activation : dropped) planner.drop(activation);
  return planner.run();
}

std::vector<RecomputeCost> recompute_costs(const MemoryView& view,
                                           const std::vector<Activation>& activations,
                                           const ForwardSegments* segments) {
  Planner planner(view, segments);
  std::vector<RecomputeCost> costs;
  costs.reserve(activations.size());
  std::size_t in_all = 0;
  for (const Activation& activation : activations) {
    costs.emplace_back();
    if (in_all > kMaxWorkInAll) continue;
    costs.back() = planner.cost_of(activation);
    in_all += costs.back().work.size();
  }
  return costs;
}

}  // namespace foretrace
