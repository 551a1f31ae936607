// Puts more or fewer samples in a batch. The work of the passes follows their number, down to a
// kernel's minimum time; so do activations, temporaries and inputs:
//
//     stream  |iAABBu|   factor 2  ->  stream  |iiAAAABBBBu|
//
//     t' = floor + (t - floor) * factor      bytes' = bytes * factor
//
// A kernel that does not fill the device takes more work in the same time until it does
// (batch_work.h). Parameters, gradients, the optimizer's state and work, collectives of gradients,
// and the host's work to launch all of it stay. Ignored: other kernels that libraries choose for
// other shapes.

#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/applies.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/batch_work.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

class BatchSize final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.number("factor", factor_, "Samples in the new batch for each one recorded", 1e-6, 1e6);
    fields.optional_integer("from", from_, "Samples in the recorded batch, instead of factor", 1);
    fields.optional_integer("to", to_, "Samples in the new batch, together with from", 1);
  }

  Applicability applies(const Graph& graph) const override {
    if (Applicability known = applies_to_frameworks(graph); known.share <= 0) return known;
    return ServingGraph(graph).applies_beyond_decoding("serving_batch");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const double factor = growth_factor(factor_, from_, to_);
    BatchWork work(graph);
    const Bytes peak = peak_memory(graph);
    GrowthTally tally;
    grow_work(graph, work, std::vector<double>(graph.task_count(), factor),
              std::vector<double>(graph.task_count(), context.samples * context.positions), tally);
    grow_blocks(graph, work, std::vector<double>(graph.allocations().size(), factor), tally);
    if (tally.tasks == 0)
      throw Error(
          "factor: this trace has no kernels, copies or loading of input that depend on a batch");
    Effect effect;
    effect.changed = tally.changed;
    effect.summary =
        fmt::format("batches {} times as large: {} from {} to {} in all, {} resized",
                    to_text(factor), counted(tally.tasks, "task"), to_text(tally.before),
                    to_text(tally.after), counted(tally.blocks, "allocation"));
    effect.assumptions = {
        "kernels of the passes take their shortest time plus time in proportion to the samples; "
        "kernels that do not fill the device take more samples in the same time until they do",
        "launching, the update and collectives take as long as before"};
    if (tally.blocks > 0) {
      effect.assumptions.push_back(
          "all memory that the passes allocate, except gradients, is in proportion to the samples");
      effect.figures.push_back({"peak_before", peak});
      effect.figures.push_back({"peak_after", peak_memory(graph)});
    }
    effect.figures.push_back({"work_before", tally.before});
    effect.figures.push_back({"work_after", tally.after});
    return effect;
  }

  JobChange job_change() const override {
    const double factor = growth_factor(factor_, from_, to_);
    return {.samples = factor, .tokens = factor, .device = {}};
  }

 private:
  double factor_ = 1;
  std::optional<std::int64_t> from_, to_;
};

}  // namespace

TransformEntry batch_size_entry() {
  return {
      .make = create<BatchSize>,
      .assumes =
          "Each kernel of the passes takes as long as the shortest kernel of the trace, plus "
          "time in proportion to the samples; for kernels bound by memory, traffic of "
          "parameters does not grow where it is known which memory they use. Copies to and "
          "from the host larger than a single number, and loading, are in proportion, too. The "
          "update, collectives, launching and other host work stay. In memory, all that the "
          "passes allocate grows except gradients; shapes need not be whole numbers. A kernel "
          "whose blocks did not fill the device takes more work in the same time until they "
          "do, where the trace records their number and the device. Libraries that choose other "
          "kernels for other shapes are not modelled.",
      .advice = {.goal = Goal::throughput,
                 .tries = {"batch_size:factor=2"},
                 .samples = 2,
                 .applies_to = {"batch"}}};
}

}  // namespace foretrace
