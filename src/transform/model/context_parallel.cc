// Shares the sequences of a job recorded on one GPU among several GPUs (ring attention; Liu et al.,
// 2023):
//
//     stream   |x A x|      ->      |xAx|e|      A: attention, x: work on single positions;
//                                                e: transfers that attention does not hide
//
// Every GPU has a part of the positions. Keys and values go around a ring: in each of N - 1 rounds,
// a GPU sends the keys and values it has while attention runs on them. A round waits for
//
//     max(0, send of keys and values / N  -  attention of a round)
//
// and in the backward pass the gradients of keys and values go around as well.

#include <algorithm>
#include <fmt/core.h>
#include <string>
#include <vector>

#include "foretrace/error.h"
#include "transform/applies.h"
#include "transform/edit/registered.h"
#include "transform/model/divided_model.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/gradients.h"

namespace foretrace {
namespace {

bool is_attention(std::string_view name) {
  static constexpr std::string_view kWords[] = {"flash", "fmha", "attention", "softmax", "bmm"};
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

class ContextParallel final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("gpus", gpus_, "GPUs that share the sequence", 2, 65'536);
    network_.describe(fields);
    fields.integer("blocks", blocks_,
                   "Transformer blocks of the model; 0: those that the trace names, or 24", 0,
                   100'000);
    fields.bytes("kv_bytes", kv_,
                 "Keys and values of a block for the whole sequence: 2 x samples x positions x "
                 "heads of keys x size of a head x bytes of an element");
    fields.integer("positions", positions_,
                   "Positions of a sequence, which the GPUs must divide; 0: not known", 0,
                   1'000'000'000);
  }

  Applicability applies(const Graph& graph) const override { return applies_to_sequences(graph); }

  Effect apply(Graph& graph, const Context& context) const override {
    refuse_communication(graph);
    if (kv_ == Bytes{})
      throw Error(
          "kv_bytes: must be given (2 x samples x positions x heads of keys x size of a head x "
          "bytes of an element), because the trace does not record shapes");
    if (positions_ > 0 && positions_ % gpus_ != 0)
      throw Error(fmt::format("gpus: must divide the {} positions, got {}", positions_, gpus_));
    DividedModel model(graph, blocks_);
    model.divide_kernels(1 / static_cast<double>(gpus_), [](const Task&) { return true; });
    Communicator network(network_, gpus_, context.gpus_per_worker);
    const Bytes part{(kv_.count + gpus_ - 1) / gpus_};
    Nanoseconds sent{0}, exposed{0};
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      const std::int64_t tensors = phase == Phase::forward ? 1 : 2;
      const Nanoseconds send = network.time(Operation::send_receive, Bytes{part.count * tensors});
      const Nanoseconds round = attention_of_block(graph, model, phase) / gpus_;
      const Nanoseconds wait = (gpus_ - 1) * std::max(0ns, send - round);
      sent += (gpus_ - 1) * send * static_cast<std::int64_t>(model.blocks());
      exposed += wait * static_cast<std::int64_t>(model.blocks());
      model.add_behind_blocks(phase, "ring of keys and values", wait,
                              Bytes{(gpus_ - 1) * tensors * part.count});
    }
    model.divide_memory(MemoryUse::activation, gpus_);
    Effect effect;
    effect.changed = model.changed();
    effect.summary = fmt::format(
        "{} GPUs share the sequence; of {} of transfers a step attention hides all but {}", gpus_,
        to_text(sent), to_text(exposed));
    effect.figures = {{"transfer_per_step", sent}, {"exposed_per_step", exposed}};
    effect.transfers = network.doubt();
    effect.assumptions = network.assumed();
    effect.assumptions.emplace_back(
        "positions are distributed such that causal attention takes the same time on every GPU; "
        "parameters stay whole, and data_parallel sums their gradients");
    return effect;
  }

  JobChange job_change() const override { return {.ranks = gpus_}; }

 private:
  /// Returns the time of attention in one block, after kernels were divided; the mean over all
  /// blocks and steps.
  static Nanoseconds attention_of_block(const Graph& graph, const DividedModel& model,
                                        Phase phase) {
    Nanoseconds sum{0};
    std::int64_t blocks = 0;
    for (const auto& [step, units] : model.units().steps) {
      for (const UnitWork& unit : phase == Phase::forward ? units.forward : units.backward) {
        ++blocks;
        for (const TaskId id : unit.tasks)
          if (is_attention(graph.name(id))) sum += graph.task(id).duration;
      }
    }
    return sum / std::max<std::int64_t>(1, blocks);
  }

  std::int64_t gpus_ = 8, blocks_ = 0, positions_ = 0;
  NetworkSettings network_;
  Bytes kv_{};
};

}  // namespace

TransformEntry context_parallel_entry() {
  return {
      .make = create<ContextParallel>,
      .assumes =
          "Several GPUs share each sequence. All kernels of both passes take their part of the "
          "time, but not less than the shortest kernel. Keys and values go around a ring of the "
          "GPUs, their gradients as well in the backward pass; a round waits for what attention "
          "of that round does not hide. Attention is known by the names of kernels. Activations "
          "are divided, parameters are not. The size of keys and values must be given.",
      .advice = {.why_not = "say how many GPUs share a sequence, and the sizes of the model: "
                            "context_parallel:gpus=8,machine=dgx-h100,kv_bytes=64MB"}};
}

}  // namespace foretrace
