// Makes sequences longer or shorter, as many in a batch as before. Work and memory per position
// grow with their length, as with a larger batch (batch_work.h); attention's scores, one for each
// pair of positions, grow with its square:
//
//     bytes' = bytes * factor        scores' = scores * factor^2
//
// The kernels that make or read scores, and fused attention, take longer in proportion to scores;
// all others as with a larger batch. Parameters, gradients, the optimizer's state and its workspace
// stay. Ignored: tables with a row for each possible position, and other kernels that libraries
// choose for other shapes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/core.h>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "graph/ops.h"
#include "graph/select.h"
#include "transform/applies.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/batch_work.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

// Finds the blocks of attention's scores: one number for each pair of positions, so that they grow
// with the square of the sequence. Shapes are not recorded; ops, source lines and sizes are:
//
//     made by      a softmax, a masked fill or a batched product with a bias added, in the forward
//                  pass; if source lines or modules name attention, only there, and then also by
//                  the ops that come with these (exp, where, bmm)
//     never made   a linear layer, norm, embedding or activation function: blocks of that size
//     by           have a number for each position, not for each pair; in the forward pass, those
//                  that a softmax of attention makes (an op, or a function of the program), and
//                  other blocks of that size there, are scores nevertheless: 16 heads of 256 x 256
//                  are as large as a layer of 256 x 4096
//     size         blocks of the backward pass are scores if scores of the forward pass have the
//                  same size
//
// Fused attention (flash, memory-efficient) keeps no scores, and none are found.

template <std::size_t N>
bool is_one_of(std::string_view op, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), op) != list.end();
}

/// Whether the output of `op` is scores wherever the op runs.
bool makes_scores(std::string_view op) {
  constexpr std::array<std::string_view, 3> kOps = {"softmax", "masked_fill", "baddbmm"};
  return is_one_of(op, kOps);
}

/// Whether the output of `op` is scores within attention; elsewhere it may be anything.
bool may_make_scores(std::string_view op) {
  constexpr std::array<std::string_view, 4> kOps = {"exp", "where", "bmm", "dropout"};
  return is_one_of(op, kOps);
}

/// Whether the output of `op` has a number, or a row of numbers, for each position.
bool is_by_position(std::string_view op) {
  constexpr std::array<std::string_view, 13> kOps = {
      "linear", "addmm", "mm",   "layer_norm", "native_layer_norm", "rms_norm",   "embedding",
      "gelu",   "relu",  "silu", "sigmoid",    "cross_entropy",     "log_softmax"};
  return is_one_of(op, kOps);
}

class ScoreFinder {
 public:
  explicit ScoreFinder(const Graph& graph)
      : graph_(graph), names_attention_("/(?i)atten|attn/", graph.names()) {}

  /// 1 for each allocation that holds scores.
  std::vector<char> find() {
    for (const Allocation& block : graph_.allocations()) knows_attention_ |= in_attention(block);
    const Sizes sizes = sizes_of_forward();
    std::vector<char> found;
    for (const Allocation& block : graph_.allocations()) {
      const std::int64_t size = asked_bytes(block);
      const bool by_size = sizes.scores.contains(size) && !sizes.others.contains(size);
      // Where blocks by position have that size, too, only op and place tell them apart.
      const bool by_place = sizes.sure.contains(size) && is_forward(block) && in_attention(block) &&
                            !is_by_position(bare_op_name(graph_.names()[block.op]));
      found.push_back(block.made_by != kNoTask && (by_size || by_place) ? 1 : 0);
    }
    return found;
  }

 private:
  /// Sizes of blocks that the forward pass makes as scores, that a softmax of attention makes, and
  /// that have numbers for positions.
  struct Sizes {
    std::set<std::int64_t> scores, sure, others;
  };

  Sizes sizes_of_forward() {
    Sizes sizes;
    for (const Allocation& block : graph_.allocations()) {
      if (!is_forward(block)) continue;
      const std::string_view op = bare_op_name(graph_.names()[block.op]);
      const bool here = !knows_attention_ || in_attention(block);
      if (made_as_scores(block)) sizes.scores.insert(asked_bytes(block));
      if (knows_attention_ && here && (makes_scores(op) || in_softmax(block)))
        sizes.sure.insert(asked_bytes(block));
      if (is_by_position(op) || !here) sizes.others.insert(asked_bytes(block));
    }
    return sizes;
  }

  bool is_forward(const Allocation& block) const {
    return block.made_by != kNoTask && graph_.task(block.made_by).phase == Phase::forward;
  }

  /// Whether the op and the place of a block of the forward pass are those of scores.
  bool made_as_scores(const Allocation& block) {
    const std::string_view op = bare_op_name(graph_.names()[block.op]);
    if (!knows_attention_) return makes_scores(op);
    return in_attention(block) && (makes_scores(op) || may_make_scores(op) || in_softmax(block));
  }

  /// Whether a softmax of the program's own asked for the block.
  bool in_softmax(const Allocation& block) const {
    std::string_view stack = graph_.names()[block.stack];
    std::string_view innermost = stack.substr(0, stack.find(';'));
    while (innermost.find(".py:") == std::string_view::npos && innermost.size() < stack.size()) {
      stack.remove_prefix(innermost.size() + 1);
      innermost = stack.substr(0, stack.find(';'));
    }
    return innermost.find("softmax") != std::string_view::npos &&
           innermost.find("log_softmax") == std::string_view::npos;
  }

  bool in_attention(const Allocation& block) {
    if (names_attention_(block.stack)) return true;
    return block.made_by != kNoTask && names_attention_(graph_.task(block.made_by).module);
  }

  const Graph& graph_;
  NameCondition names_attention_;
  bool knows_attention_ = false;
};

bool fits(const Allocation& block, std::optional<std::int64_t> length) {
  if (!length) return true;
  return asked_bytes(block) % (*length * *length) == 0;
}

/// Returns 1 for each allocation that holds scores, otherwise 0. With `length`, the positions of a
/// recorded sequence, only sizes that are a multiple of its square count. Linear, except for
/// sorting sizes.
std::vector<char> attention_scores(const Graph& graph, std::optional<std::int64_t> length) {
  std::vector<char> scores = ScoreFinder(graph).find();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != 0 && !fits(graph.allocations()[i], length)) scores[i] = 0;
  }
  return scores;
}

constexpr std::int64_t kLongestSequence = 1'000'000'000;

/// The greatest factor by which a length may change; scores then change by its square.
constexpr double kMaxFactor = 1e4;

class SequenceLength final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.number("factor", factor_, "Positions in a new sequence for each one recorded",
                  1 / kMaxFactor, kMaxFactor);
    fields.optional_integer("from", from_, "Positions in a recorded sequence, instead of factor",
                            1);
    fields.optional_integer("to", to_, "Positions in a new sequence, together with from", 1);
  }

  Applicability applies(const Graph& graph) const override {
    if (Applicability known = applies_to_sequences(graph); known.share <= 0) return known;
    return ServingGraph(graph).applies_beyond_decoding("context_length");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const double factor = find_factor();
    const std::vector<char> scores = attention_scores(graph, from_);
    BatchWork work(graph, kMaxFactor);
    const Bytes peak = peak_memory(graph);
    const Scores of_scores = growing_scores(graph, work, scores);
    GrowthTally tally;
    const std::vector<char> pairs = by_pairs(graph, scores);
    std::vector<double> before = growth(pairs, context.positions);
    for (double& grown : before) grown *= context.samples;
    grow_work(graph, work, growth(pairs, factor), before, tally);
    grow_blocks(graph, work, growth(scores, factor), tally);
    if (tally.tasks == 0 && tally.blocks == 0)
      throw Error("factor: this trace has no kernels and no memory that depend on a sequence");
    Effect effect;
    effect.changed = tally.changed;
    effect.summary = fmt::format(
        "sequences {} times as long: {} from {} to {} in all, {} resized, {} of attention's "
        "scores by the square",
        to_text(factor), counted(tally.tasks, "task"), to_text(tally.before), to_text(tally.after),
        counted(tally.blocks, "allocation"), counted(of_scores.count, "block"));
    effect.assumptions.push_back(
        "memory and computation of the passes are in proportion to the positions, attention's "
        "scores to their square; parameters, gradients, the optimizer and launching stay");
    if (of_scores.count == 0 && tally.blocks > 0)
      effect.assumptions.push_back(
          "attention keeps no scores (fused attention), because ops, source lines and sizes show "
          "none");
    effect.figures = {{"peak_before", peak},
                      {"peak_after", peak_memory(graph)},
                      {"scores_before", of_scores.bytes}};
    return effect;
  }

  JobChange job_change() const override {
    return {.samples = 1, .tokens = find_factor(), .device = {}};
  }

 private:
  double find_factor() const {
    const double factor = growth_factor(factor_, from_, to_);
    if (!from_) return factor;
    if (std::max(*from_, *to_) > kLongestSequence)
      throw Error(fmt::format("from: must be at most {}, and so must to", kLongestSequence));
    if (factor > kMaxFactor || factor < 1 / kMaxFactor)
      throw Error("to: must be within a factor of 10000 of from");
    return factor;
  }

  /// Returns the factor by which each task or allocation grows.
  static std::vector<double> growth(const std::vector<char>& by_pairs, double factor) {
    std::vector<double> factors;
    for (const char squared : by_pairs) factors.push_back(squared != 0 ? factor * factor : factor);
    return factors;
  }

  struct Scores {
    std::size_t count = 0;
    Bytes bytes{};
  };

  static Scores growing_scores(const Graph& graph, const BatchWork& work,
                               const std::vector<char>& scores) {
    Scores found;
    for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
      if (scores[i] == 0 || !work.grows(i)) continue;
      ++found.count;
      found.bytes += graph.allocations()[i].bytes;
    }
    return found;
  }

  /// Tasks whose work is in proportion to the scores: those that use some, and fused attention.
  static std::vector<char> by_pairs(const Graph& graph, const std::vector<char>& scores) {
    std::vector<char> tasks(graph.task_count(), 0);
    for (const Access& access : graph.accesses()) {
      if (access.task != kNoTask && scores[access.allocation] != 0) tasks[index(access.task)] = 1;
    }
    NameCondition is_fused("/(?i)flash|fmha|attention/", graph.names());
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const Task& task = graph.task(TaskId{i});
      if (task.kind == TaskKind::kernel && is_fused(task.name)) tasks[i] = 1;
    }
    return tasks;
  }

  double factor_ = 1;
  std::optional<std::int64_t> from_, to_;
};

}  // namespace

TransformEntry sequence_length_entry() {
  return {
      .make = create<SequenceLength>,
      .assumes =
          "A batch keeps its number of sequences, each longer or shorter. Memory that the passes "
          "allocate, except gradients, is in proportion to the positions; attention's scores "
          "to their square. Scores are found by ops (softmax, masked fill), by source lines or "
          "modules that name attention, and by their sizes; with \"from\" and \"to\" only "
          "sizes that are a multiple of the square of the recorded length count. Kernels that "
          "use scores, and fused attention, take longer by the square, others as with a larger "
          "batch (batch_size). Tables with a row for each possible position stay.",
      .advice = {.why_not = "a different workload: you choose the sequence length"}};
}

}  // namespace foretrace
