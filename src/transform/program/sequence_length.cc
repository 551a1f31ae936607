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
#include <fmt/core.h>
#include <optional>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/applies.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/attention_scores.h"
#include "transform/program/batch_work.h"

namespace foretrace {
namespace {

constexpr std::int64_t kLongestSequence = 1'000'000'000;

/// The greatest factor by which a length may change; scores then change by its square.
constexpr double kMostFactor = 1e4;

class SequenceLength final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.number("factor", factor_, "Positions in a new sequence for each one recorded",
                  1 / kMostFactor, kMostFactor);
    fields.optional_integer("from", from_, "Positions in a recorded sequence, instead of factor",
                            1);
    fields.optional_integer("to", to_, "Positions in a new sequence, together with from", 1);
  }

  Applicability applies(const Graph& graph) const override { return applies_to_sequences(graph); }

  Effect apply(Graph& graph, const Context& context) const override {
    const double factor = find_factor();
    const std::vector<char> scores = attention_scores(graph, from_);
    BatchWork work(graph, kMostFactor);
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
    if (factor > kMostFactor || factor < 1 / kMostFactor)
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
