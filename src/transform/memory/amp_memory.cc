#include "transform/memory/amp_memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/ops.h"
#include "transform/edit/edit.h"

namespace foretrace {
namespace {

bool can_shrink(const Allocation& block) {
  return block.made_by != kNoTask && block.bytes > Bytes{} &&
         (block.use == MemoryUse::activation || block.use == MemoryUse::temporary ||
          block.use == MemoryUse::workspace);
}

class Halver {
 public:
  Halver(Graph& graph, const std::vector<char>& may_change, const std::vector<char>& already_half)
      : graph_(graph),
        view_(graph),
        may_change_(may_change),
        already_half_(already_half),
        half_(graph.allocations().size(), 0),
        low_(graph.task_count(), 0) {
    for (const Allocation& block : graph.allocations()) asked_.push_back(asked_bytes(block));
  }

  HalvedMemory run() {
    const std::vector<std::uint32_t> order = in_order();
    for (const std::uint32_t block : order) {
      if (kind(block) != AutocastList::half) continue;
      // If uses are unknown, the task that requested the block of a product is assumed to compute
      // it.
      if (!knows_uses()) low_[index(view_.block(block).made_by)] = 1;
      for (const Access& access : view_.uses.of_block(block)) {
        if (access.writes) low_[index(access.task)] = 1;
      }
    }
    for (const std::uint32_t block : order) {
      decide(block);
      previous_is_half_ = half_[block] != 0;
      if (view_.phase(view_.block(block).made_by) != Phase::forward) continue;
      PrecisionCount& count = forward_[asked_[block]];
      ++count.all, count.half += half_[block] != 0 ? 1 : 0;
    }
    tally_.unknown = unknown_at_first();
    for (const auto& [step, products] : products_of_steps()) cast_weights(products);
    return tally_;
  }

 private:
  /// Counts the blocks of one size, and how many of them are in half precision.
  struct PrecisionCount {
    std::size_t all = 0, half = 0;
  };

  std::vector<std::uint32_t> in_order() const {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < graph_.allocations().size(); ++i) {
      if (can_shrink(graph_.allocations()[i])) order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Allocation &left = view_.block(a), &right = view_.block(b);
      const Nanoseconds made_a = view_.start(left.made_by) + left.made_after;
      const Nanoseconds made_b = view_.start(right.made_by) + right.made_after;
      if (made_a != made_b) return made_a < made_b;
      return left.made_order != right.made_order ? left.made_order < right.made_order : a < b;
    });
    return order;
  }

  AutocastList kind(std::uint32_t block) {
    const NameId op = view_.block(block).op;
    const auto [at, added] = kinds_.try_emplace(op, AutocastList::other);
    if (added) at->second = autocast_list_of(graph_.names()[op]);
    return at->second;
  }

  bool knows_uses() const { return !graph_.accesses().empty(); }

  void decide(std::uint32_t block) {
    bool written = false, by_kernels = false, allowed = true, was_half = false;
    for (const Access& access : view_.uses.of_block(block)) {
      if (!access.writes) continue;
      written = true;
      // A kernel with split sums has its result set to zero first; a fill has no precision.
      if (graph_.task(access.task).kind != TaskKind::kernel) continue;
      by_kernels = true;
      allowed = allowed && may_change_[index(access.task)] != 0;
      was_half = was_half || already_half_[index(access.task)] != 0;
    }
    if (was_half) {
      half_[block] = 1;
      return;
    }
    const bool stays = written && !(by_kernels && allowed);
    if (stays || view_.phase(view_.block(block).made_by) == Phase::update) return;
    switch (kind(block)) {
      case AutocastList::half:
        return shrink(block);
      case AutocastList::full_kept:
        return add_cast(block);
      case AutocastList::full:
        if (first_low_reader(block) != kNoTask) shrink(block);
        return;
      case AutocastList::other:
        if (knows_uses() ? reads_half_only(block) : seems_half(block)) shrink(block);
        return;
    }
  }

  /// Guesses the precision of a block if the inputs of its op are unknown: a gradient has the type,
  /// and so the size, of its value; any other block is made from the one before it.
  bool seems_half(std::uint32_t block) const {
    if (view_.phase(view_.block(block).made_by) != Phase::backward) return previous_is_half_;
    const auto count = forward_.find(asked_[block]);
    if (count == forward_.end()) return previous_is_half_;
    const auto& [all, half] = count->second;
    return half == all || (half > 0 && previous_is_half_);
  }

  /// Whether the tasks that write the block read something, and only in half precision.
  bool reads_half_only(std::uint32_t block) const {
    bool any = false;
    for (const Access& access : view_.uses.of_block(block)) {
      if (!access.writes) continue;
      for (const Access& read : view_.uses.of_task(access.task)) {
        if (read.writes || read.allocation == block || !can_shrink(view_.block(read.allocation)))
          continue;
        if (half_[read.allocation] == 0) return false;
        any = true;
      }
    }
    return any;
  }

  /// Returns the first product of the forward pass that reads the block; kNoTask if there is none
  /// or the block is not kept for the backward pass.
  TaskId first_low_reader(std::uint32_t block) const {
    if (view_.block(block).use != MemoryUse::activation) return kNoTask;
    for (const Access& access : view_.uses.of_block(block)) {
      if (view_.is_late(access.task)) break;
      if (!access.writes && low_[index(access.task)] != 0) return access.task;
    }
    return kNoTask;
  }

  void shrink(std::uint32_t number) {
    half_[number] = 1;
    const Allocation block = view_.block(number);
    const Allocation wanted = resized(block, 0.5, "memory");
    ++tally_.blocks;
    tally_.before += block.bytes;
    tally_.after += wanted.bytes;
    replace_block(graph_, number, wanted);
  }

  void add_cast(std::uint32_t number) {
    const TaskId reader = first_low_reader(number);
    if (reader == kNoTask) return;
    Allocation cast = resized(view_.block(number), 0.5, "memory");
    cast.made_by = allocating_task(graph_, view_.launches, cast, reader);
    cast.made_after = 0ns;
    graph_.allocations().push_back(cast);
    ++tally_.casts;
  }

  Bytes unknown_at_first() const {
    std::set<std::int32_t> devices;
    Bytes known{};
    for (const Allocation& block : graph_.allocations()) {
      devices.insert(block.device);
      if (block.made_by == kNoTask && block.use != MemoryUse::unknown) known += block.bytes;
    }
    Bytes all{};
    for (const std::int32_t device : devices) all += initial_memory(graph_, device);
    return std::max(all - known, Bytes{});
  }

  /// The products of one step.
  struct Products {
    TaskId first = kNoTask, last = kNoTask;  ///< First and last use in the forward pass.
    TaskId last_late = kNoTask;              ///< Last use in the backward pass; kNoTask: none.
  };

  std::map<std::int32_t, Products> products_of_steps() const {
    std::map<std::int32_t, Products> steps;
    const auto is_first = [&](TaskId task, TaskId known) {
      return known == kNoTask || view_.before(task, known);
    };
    const auto is_last = [&](TaskId task, TaskId known) {
      return known == kNoTask || view_.before(known, task);
    };
    for (std::size_t i = 0; i < low_.size(); ++i) {
      const auto task = static_cast<TaskId>(i);
      if (low_[i] == 0) continue;
      Products& products = steps[graph_.task(task).step];
      if (view_.is_late(task)) {
        if (is_last(task, products.last_late)) products.last_late = task;
        continue;
      }
      if (is_first(task, products.first)) products.first = task;
      if (is_last(task, products.last)) products.last = task;
    }
    std::erase_if(steps, [](const auto& step) { return step.second.first == kNoTask; });
    // Tasks outside all steps may lie before the first and after the last.
    if (steps.size() > 1) steps.erase(-1);
    return steps;
  }

  /// Adds a block for each cast, because an allocator places many small blocks differently from one
  /// large block.
  void cast_weights(const Products& products) {
    const Nanoseconds now = view_.start(products.first);
    const Allocation none;
    Bytes weights{};
    const std::size_t count = half_.size();  // Does not count the casts.
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!is_weight(i, now)) continue;
      const auto [reader, last] = readers(i, products);
      const TaskTime freed = end_of(graph_, allocating_task(graph_, view_.launches, none, last));
      Allocation cast = resized(view_.block(i), 0.5, "memory");
      cast.made_by = allocating_task(graph_, view_.launches, none, reader);
      cast.freed_by = freed.task;
      cast.made_after = 0ns;
      cast.freed_after = freed.after;
      cast.use = MemoryUse::temporary;
      weights += cast.bytes;
      graph_.allocations().push_back(cast);
    }
    tally_.weight_casts = std::max(tally_.weight_casts, weights);
  }

  /// Whether the block is a weight that exists at `now` and, if readers are known, is read by
  /// products.
  bool is_weight(std::uint32_t number, Nanoseconds now) const {
    const Allocation& block = view_.block(number);
    if (block.use != MemoryUse::parameter || block.bytes <= Bytes{}) return false;
    if (block.made_by != kNoTask && view_.start(block.made_by) > now) return false;
    if (block.freed_by != kNoTask && view_.start(block.freed_by) <= now) return false;
    const auto uses = view_.uses.of_block(number);
    return uses.empty() || std::any_of(uses.begin(), uses.end(), [&](const Access& access) {
             return low_[index(access.task)] != 0;
           });
  }

  /// Returns the first product of the step that reads the weight, and the last task that needs its
  /// cast. If readers are unknown, these are the first and the last product of the step.
  std::pair<TaskId, TaskId> readers(std::uint32_t number, const Products& products) const {
    const auto uses = view_.uses.of_block(number);
    if (uses.empty())
      return {products.first, products.last_late == kNoTask ? products.last : products.last_late};
    TaskId first = kNoTask, last = products.last;
    const std::int32_t step = graph_.task(products.first).step;
    for (const Access& access : uses) {
      if (access.writes || graph_.task(access.task).step != step) continue;
      if (low_[index(access.task)] != 0 && first == kNoTask) first = access.task;
      if (graph_.task(access.task).phase == Phase::backward) last = access.task;
    }
    return {first == kNoTask ? products.first : first, last};
  }

  Graph& graph_;
  MemoryView view_;
  const std::vector<char>& may_change_;
  const std::vector<char>& already_half_;
  std::vector<char> half_;  ///< For each block: whether it is in half precision.
  std::vector<char> low_;   ///< For each task: whether it multiplies in half precision.
  std::map<NameId, AutocastList> kinds_;
  std::vector<std::int64_t> asked_;                 ///< Recorded size of each block.
  std::map<std::int64_t, PrecisionCount> forward_;  ///< Blocks of the forward pass, by that size.
  bool previous_is_half_ = false;  ///< Whether the block made before this one is in half precision.
  HalvedMemory tally_;
};

}  // namespace

HalvedMemory halve_memory(Graph& graph, const std::vector<char>& may_change,
                          const std::vector<char>& already_half) {
  return Halver(graph, may_change, already_half).run();
}

}  // namespace foretrace
