#include "transform/amp_memory.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace foretrace {
namespace {

enum class OpKind : std::uint8_t { other, low, full, full_kept };

/// "aten::softmax_" as "softmax", "torch.nn.functional.linear" as "linear".
std::string_view bare_name(std::string_view op) {
  const std::size_t colon = op.find_last_of(":.");
  if (colon != op.npos) op.remove_prefix(colon + 1);
  while (op.starts_with('_')) op.remove_prefix(1);
  while (op.ends_with('_')) op.remove_suffix(1);
  return op;
}

OpKind kind_of(std::string_view op) {
  op = bare_name(op);
  constexpr std::string_view kLow[] = {"addbmm",    "addmm",        "addmv",  "addr",     "baddbmm",
                                       "bmm",       "chain_matmul", "einsum", "linear",   "matmul",
                                       "multi_dot", "mm",           "mv",     "LSTMCell", "GRUCell",
                                       "RNNCell",   "prelu"};
  constexpr std::string_view kKept[] = {"softmax", "log_softmax", "exp",       "expm1",
                                        "tan",     "rsqrt",       "reciprocal"};
  constexpr std::string_view kFull[] = {"acos",
                                        "asin",
                                        "cdist",
                                        "cosh",
                                        "cosine_similarity",
                                        "cross_entropy",
                                        "cumprod",
                                        "cumsum",
                                        "dist",
                                        "erfinv",
                                        "group_norm",
                                        "native_group_norm",
                                        "layer_norm",
                                        "native_layer_norm",
                                        "kl_div",
                                        "log",
                                        "log10",
                                        "log1p",
                                        "log2",
                                        "norm",
                                        "normalize",
                                        "pdist",
                                        "pow",
                                        "prod",
                                        "renorm",
                                        "rpow",
                                        "sinh",
                                        "softmin",
                                        "softplus",
                                        "sum"};
  const auto in = [&](const auto& list) {
    return std::find(std::begin(list), std::end(list), op) != std::end(list);
  };
  if (in(kLow) || op.starts_with("conv") || op.find("convolution") != op.npos ||
      op.starts_with("scaled_dot_product")) {
    return OpKind::low;
  }
  if (in(kKept)) return OpKind::full_kept;
  if (in(kFull) || op.ends_with("_loss") || op.starts_with("binary_cross_entropy"))
    return OpKind::full;
  return OpKind::other;
}

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
        low_(graph.task_count(), 0) {}

  HalvedMemory run() {
    const std::vector<std::uint32_t> order = in_order();
    for (const std::uint32_t block : order) {
      if (kind(block) != OpKind::low) continue;
      // Without known uses, who asked for a product stands for who computes it.
      if (!knows_uses()) low_[index(view_.block(block).made_by)] = 1;
      for (const Access& access : view_.uses.of_block(block)) {
        if (access.writes) low_[index(access.task)] = 1;
      }
    }
    for (const std::uint32_t block : order) {
      decide(block);
      follows_half_ = half_[block] != 0;
    }
    keep_weight_casts();
    return tally_;
  }

 private:
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

  OpKind kind(std::uint32_t block) {
    const NameId op = view_.block(block).op;
    const auto [at, added] = kinds_.try_emplace(op, OpKind::other);
    if (added) at->second = kind_of(graph_.names()[op]);
    return at->second;
  }

  bool knows_uses() const { return !graph_.accesses().empty(); }

  void decide(std::uint32_t block) {
    bool writers = false, allowed = true, was_half = false;
    for (const Access& access : view_.uses.of_block(block)) {
      if (!access.writes) continue;
      writers = true;
      allowed = allowed && may_change_[index(access.task)] != 0;
      was_half = was_half || already_half_[index(access.task)] != 0;
    }
    if (was_half) {
      half_[block] = 1;
      return;
    }
    if ((writers && !allowed) || view_.phase(view_.block(block).made_by) == Phase::update) return;
    switch (kind(block)) {
      case OpKind::low:
        return shrink(block);
      case OpKind::full_kept:
        return add_cast(block);
      case OpKind::full:
        if (first_low_reader(block) != kNoTask) shrink(block);
        return;
      case OpKind::other:
        if (knows_uses() ? reads_half_only(block) : follows_half_) shrink(block);
        return;
    }
  }

  /// Whether whatever writes the block reads only what is in half precision, and something.
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

  /// The first of the forward pass that multiplies matrices and reads the block, if it is kept.
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
    cast.made_by = allocator_side(graph_, view_.launches, cast, reader);
    cast.made_after = 0ns;
    graph_.allocations().push_back(cast);
    ++tally_.casts;
  }

  /// From the first product of each step's forward pass to its last.
  void keep_weight_casts() {
    std::map<std::int32_t, std::pair<TaskId, TaskId>> of_step;
    for (std::size_t i = 0; i < low_.size(); ++i) {
      const auto task = static_cast<TaskId>(i);
      if (low_[i] == 0 || view_.is_late(task)) continue;
      const auto [at, added] = of_step.try_emplace(graph_.task(task).step, task, task);
      if (added) continue;
      if (view_.before(task, at->second.first)) at->second.first = task;
      if (view_.before(at->second.second, task)) at->second.second = task;
    }
    for (const auto& [step, tasks] : of_step) {
      std::int32_t device = 0;
      const Bytes weights = casts_at(tasks.first, device);
      if (weights == Bytes{}) continue;
      const Allocation none;
      const TaskId made = allocator_side(graph_, view_.launches, none, tasks.first);
      const Moment freed =
          end_of(graph_, allocator_side(graph_, view_.launches, none, tasks.second));
      graph_.allocations().push_back({.bytes = weights,
                                      .made_by = made,
                                      .freed_by = freed.task,
                                      .freed_after = freed.after,
                                      .device = device,
                                      .use = MemoryUse::temporary});
      tally_.weight_casts = std::max(tally_.weight_casts, weights);
    }
  }

  /// Half of the weights that are there then and that products read.
  Bytes casts_at(TaskId task, std::int32_t& device) const {
    const Nanoseconds now = view_.start(task);
    Bytes weights{};
    for (std::uint32_t i = 0; i < half_.size(); ++i) {
      const Allocation& block = view_.block(i);
      if (block.use != MemoryUse::parameter || block.bytes <= Bytes{}) continue;
      if (block.made_by != kNoTask && view_.start(block.made_by) > now) continue;
      if (block.freed_by != kNoTask && view_.start(block.freed_by) <= now) continue;
      const auto uses = view_.uses.of_block(i);
      const bool read = std::any_of(uses.begin(), uses.end(), [&](const Access& access) {
        return low_[index(access.task)] != 0;
      });
      if (!uses.empty() && !read) continue;
      weights += resized(block, 0.5, "memory").bytes;
      device = block.device;
    }
    return weights;
  }

  Graph& graph_;
  MemoryView view_;
  const std::vector<char>& may_change_;
  const std::vector<char>& already_half_;
  std::vector<char> half_;  ///< Of each block.
  std::vector<char> low_;   ///< Of each task: it multiplies in half precision.
  std::map<NameId, OpKind> kinds_;
  bool follows_half_ = false;  ///< The block made in front of this one is in half precision.
  HalvedMemory tally_;
};

}  // namespace

HalvedMemory halve_memory(Graph& graph, const std::vector<char>& may_change,
                          const std::vector<char>& already_half) {
  return Halver(graph, may_change, already_half).run();
}

}  // namespace foretrace
