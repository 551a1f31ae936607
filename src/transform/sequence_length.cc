// Longer or shorter sequences in a batch of as many. What there is for each position grows with
// them, as with a larger batch (batch_work.h); attention's scores, which there are for each pair of
// positions, grow with the square:
//
//     bytes' = bytes * factor        scores' = scores * factor^2
//
// The kernels that make or read scores, and fused attention, take as much longer as scores are
// larger; all others as with a larger batch. Parameters, gradients, the optimizer's state and what
// it needs for its work stay. Ignored: tables with a row for each position that a model may have,
// and other kernels that libraries choose for other shapes.

#include <algorithm>
#include <optional>

#include "foretrace/error.h"
#include "foretrace/select.h"
#include "transform/allocation_selector.h"
#include "transform/attention_scores.h"
#include "transform/batch_work.h"
#include "transform/block_size.h"
#include "transform/edit.h"
#include "transform/registered.h"

namespace foretrace {
namespace {

constexpr std::int64_t kLongestSequence = 1'000'000'000;

/// The greatest size of a change: what grows with the square is still a number.
constexpr double kMostFactor = 1e4;

class SequenceLength final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.number("factor", factor_, "Positions in a new sequence for each one recorded",
                  1 / kMostFactor, kMostFactor);
    fields.optional_integer("from", from_, "Positions in a recorded sequence, in place of factor",
                            1);
    fields.optional_integer("to", to_, "Positions in a new sequence, together with from", 1);
  }

  Effect apply(Graph& graph) const override {
    const double factor = find_factor();
    const std::vector<char> scores = attention_scores(graph, from_);
    BatchWork work(graph);
    const Bytes peak = peak_memory(graph, fifo_timeline(graph));
    Tally tally;
    change_work(graph, work, factor, by_pairs(graph, scores), tally);
    change_blocks(graph, work, factor, scores, tally);
    if (tally.tasks == 0 && tally.blocks == 0)
      throw Error("factor: this trace has no kernels and no memory that a sequence needs");
    Effect effect;
    effect.changed = tally.changed;
    effect.summary = "sequences " + to_text(factor) +
                     " times as long: " + counted(tally.tasks, "task") + " from " +
                     to_text(tally.before) + " to " + to_text(tally.after) + " in all, " +
                     counted(tally.blocks, "allocation") + " with them, " +
                     counted(tally.scores, "block") + " of attention's scores by the square";
    effect.assumptions.push_back(
        "what the passes make and compute is in proportion to the positions, attention's scores to "
        "their square; parameters, gradients, the optimizer and launching stay");
    if (tally.scores == 0 && tally.blocks > 0)
      effect.assumptions.push_back(
          "attention keeps no scores (fused attention), as none were found by ops, source lines "
          "and "
          "sizes");
    effect.figures = {{"peak_before", peak},
                      {"peak_after", peak_memory(graph, fifo_timeline(graph))},
                      {"scores_before", tally.scores_before}};
    return effect;
  }

  JobChange job_change() const override {
    return {.samples = 1, .tokens = find_factor(), .device = {}};
  }

 private:
  struct Tally {
    std::size_t tasks = 0, blocks = 0, scores = 0, changed = 0;
    Nanoseconds before{}, after{};
    Bytes scores_before{};
  };

  double find_factor() const {
    if (from_.has_value() != to_.has_value())
      throw Error(from_ ? "to: must be given together with from"
                        : "from: must be given together with to");
    if (!from_) return factor_;
    if (factor_ != 1) throw Error("factor: cannot be given together with from and to");
    if (std::max(*from_, *to_) > kLongestSequence)
      throw Error("from: must be at most " + std::to_string(kLongestSequence) + ", as must be to");
    const double factor = static_cast<double>(*to_) / static_cast<double>(*from_);
    if (factor > kMostFactor || factor < 1 / kMostFactor)
      throw Error("to: must be within a factor of 10000 of from");
    return factor;
  }

  /// Tasks whose work is in proportion to the scores: those that touch some, and fused attention.
  static std::vector<char> by_pairs(const Graph& graph, const std::vector<char>& scores) {
    std::vector<char> tasks(graph.task_count(), 0);
    for (const Access& access : graph.accesses()) {
      if (access.task != kNoTask && scores[access.allocation] != 0) tasks[index(access.task)] = 1;
    }
    const NamePattern fused("/(?i)flash|fmha|attention/");
    std::vector<char> known(graph.names().size(), '?');
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const Task& task = graph.task(TaskId{i});
      if (task.kind != TaskKind::kernel) continue;
      char& fits = known[static_cast<std::size_t>(task.name)];
      if (fits == '?') fits = fused.matches(graph.names()[task.name]) ? 'y' : 'n';
      if (fits == 'y') tasks[i] = 1;
    }
    return tasks;
  }

  static void change_work(Graph& graph, BatchWork& work, double factor,
                          const std::vector<char>& by_pairs, Tally& tally) {
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const TaskId id{i};
      Task& task = graph.task(id);
      if (graph.removed(id) || task.duration == 0ns) continue;
      if (work.duration(id, kMostFactor) == task.duration) continue;
      const double growth = by_pairs[i] != 0 ? factor * factor : factor;
      const Nanoseconds wanted = work.duration(id, growth);
      const Bytes bytes = work.bytes(id, growth);
      ++tally.tasks;
      tally.before += std::min(task.duration, Nanoseconds::max() - tally.before);
      tally.after += std::min(wanted, Nanoseconds::max() - tally.after);
      if (wanted != task.duration || bytes != task.bytes) ++tally.changed;
      task.duration = wanted;
      task.bytes = bytes;
    }
  }

  static void change_blocks(Graph& graph, const BatchWork& work, double factor,
                            const std::vector<char>& scores, Tally& tally) {
    for (std::uint32_t i = 0; i < graph.allocations().size(); ++i) {
      if (!work.grows(i)) continue;
      const Allocation block = graph.allocations()[i];
      const Allocation wanted = resized(block, scores[i] != 0 ? factor * factor : factor, "factor");
      ++tally.blocks;
      if (scores[i] != 0) ++tally.scores, tally.scores_before += block.bytes;
      if (wanted.bytes != block.bytes) ++tally.changed;
      replace_block(graph, i, wanted);
    }
  }

  double factor_ = 1;
  std::optional<std::int64_t> from_, to_;
};

}  // namespace

std::unique_ptr<Transform> make_sequence_length() { return std::make_unique<SequenceLength>(); }

std::string_view assumes_sequence_length() {
  return "As many sequences in a batch, each longer or shorter. What the passes make in memory is "
         "in "
         "proportion to the positions, but gradients; attention's scores to their square. Scores "
         "are found by ops (softmax, masked fill), by source lines or modules that name attention, "
         "and by their sizes; with \"from\" and \"to\" only sizes that are a multiple of the "
         "square of the recorded length count. Kernels that touch scores, and fused attention, "
         "take "
         "longer by the square, others as with a larger batch (batch_size). Tables with a row for "
         "each position that a model may have stay.";
}

}  // namespace foretrace
