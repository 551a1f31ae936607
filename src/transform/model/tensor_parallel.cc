// Shares the matrix products of a job recorded on one GPU among several GPUs (Megatron-LM, Optimus,
// Tesseract, 3-D).
//
//     stream   |Q A P|1 2|     ->     |q a p|12|c|       products take their part; a collective
//                                                        behind each block, which the next waits
//                                                        for
//
// A block of a transformer has four linear layers, with h the hidden size and 12 h^2 weights:
// h -> 3h, h -> h, h -> 4h, 4h -> h. Their inputs are 7, their outputs 9 times the block's.
//
// Ignored: that smaller products use a device less well, beyond what BatchWork models, and that
// collectives can overlap with products.

#include <algorithm>
#include <fmt/core.h>
#include <string>
#include <vector>

#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "transform/applies.h"
#include "transform/edit/device_change.h"
#include "transform/edit/registered.h"
#include "transform/model/divided_model.h"
#include "transform/model/tensor_scheme.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/gradients.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

/// Inputs and outputs of the linear layers of a block, in units of the block's own output.
constexpr std::int64_t kInputs = 7, kOutputs = 9;
/// Outputs that are summed in each pass: behind attention and behind the other two layers.
constexpr std::int64_t kReduced = 2;

class TensorParallel final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("gpus", gpus_, "GPUs that share each layer", 2, 65'536);
    fields.choice("scheme", scheme_, {"1d", "2d", "2.5d", "3d"},
                  "1d: Megatron-LM; 2d: Optimus; 2.5d: Tesseract; 3d: a cube of GPUs");
    fields.integer("depth", depth_, "For 2.5d: layers of a square of GPUs", 1, 65'536);
    fields.flag("sequence_parallel", sequence_parallel_,
                "For 1d: work between the products is divided along the sequence; each "
                "all-reduce becomes a reduce-scatter and an all-gather");
    network_.describe(fields);
    fields.integer("blocks", blocks_,
                   "Transformer blocks of the model; 0: those that the trace names, or 24", 0,
                   100'000);
    fields.bytes("activation_bytes", activation_,
                 "Output of a block: samples x positions x hidden size x bytes of an element");
    fields.bytes(
        "weight_bytes", weights_,
        "Weights of a block, 12 x hidden size squared x bytes of an element; 1d sends none");
    fields.bytes("token_bytes", token_,
                 "For steps of an engine that serves: output of a block for a token, hidden size x "
                 "bytes of an element");
    fields.integer("heads", heads_, "Attention heads, which the GPUs must divide; 0: not known", 0,
                   100'000);
  }

  Applicability applies(const Graph& graph) const override { return applies_to_sequences(graph); }

  Effect apply(Graph& graph, const Context& context) const override {
    refuse_communication(graph);
    if (const ServingGraph serving(graph); serving.serves())
      return apply_to_serving(graph, serving, context);
    check_sizes();
    const TensorScheme scheme(scheme_, gpus_, depth_);
    DividedModel model(graph, blocks_);
    const double part = 1 / static_cast<double>(gpus_);
    const bool divides_all = sequence_parallel_ || !scheme.is_one_dimensional();
    KernelClasses classes(graph);
    model.divide_kernels(part, [&](const Task& task) {
      return divides_all || classes.of(task.name).bound == Boundness::compute;
    });
    if (model.changed() == 0)
      throw Error(
          "tensor_parallel needs kernels to divide: give a trace, or ask `foretrace generate MODEL "
          "--layout tp=8`");
    const BlockTensors block{.inputs = {activation_.count * kInputs},
                             .weights = weights_,
                             .outputs = {activation_.count * kOutputs},
                             .reduced = activation_};
    Communicators networks(network_, context.gpus_per_worker);
    const int pairs = scheme.is_one_dimensional() ? kReduced : 1;
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      const auto transfers =
          phase == Phase::forward ? scheme.forward(block) : scheme.backward(block);
      Nanoseconds time{0};
      for (const SchemeTransfer& transfer : transfers) time += pairs * time_of(transfer, networks);
      model.add_behind_blocks(phase, "collectives of a block", time, activation_);
    }
    for (const MemoryUse use :
         {MemoryUse::parameter, MemoryUse::gradient, MemoryUse::optimizer_state})
      model.divide_memory(use, scheme.parameter_parts());
    model.divide_levels(scheme.parameter_parts());
    model.divide_memory(MemoryUse::activation,
                        sequence_parallel_ ? gpus_ : scheme.activation_parts());
    return effect_of(model, networks);
  }

  JobChange job_change() const override { return {.ranks = gpus_}; }

 private:
  void check_sizes() const {
    if (activation_ == Bytes{})
      throw Error(
          "activation_bytes: must be given (samples x positions x hidden size x bytes of an "
          "element), because the trace does not record shapes");
    if (scheme_ != "1d" && weights_ == Bytes{})
      throw Error(
          fmt::format("weight_bytes: must be given for {}, which sends weights too", scheme_));
    if (scheme_ != "1d" && sequence_parallel_)
      throw Error("sequence_parallel: only 1d leaves work between products whole");
    if (heads_ > 0 && heads_ % gpus_ != 0)
      throw Error(fmt::format("gpus: must divide the {} heads, got {}", heads_, gpus_));
  }

  /// Steps of an engine have no passes: a layer is a kernel of attention and what follows it.
  Effect apply_to_serving(Graph& graph, const ServingGraph& serving, const Context& context) const {
    if (scheme_ != "1d" || sequence_parallel_)
      throw Error("scheme: engines that serve models share layers as 1d does");
    if (token_ == Bytes{})
      throw Error(
          "token_bytes: must be given (hidden size x bytes of an element), because names of "
          "steps tell tokens but no sizes");
    if (heads_ > 0 && heads_ % gpus_ != 0)
      throw Error(fmt::format("gpus: must divide the {} heads, got {}", heads_, gpus_));
    Communicator network(network_, gpus_, context.gpus_per_worker);
    KernelClasses classes(graph);
    const Nanoseconds floor = shortest_kernel(graph);
    Effect effect;
    Nanoseconds exchanged{0};
    std::size_t layers = 0;
    const std::size_t recorded = graph.task_count();
    for (std::uint32_t i = 0; i < recorded; ++i) {
      const TaskId id{i};
      const Task now = graph.task(id);
      const ServingStep* const step = serving.step_of(now);
      if (graph.removed(id) || step == nullptr || now.kind != TaskKind::kernel) continue;
      const bool is_attention = serving.is_attention(now);
      if (is_attention || serving.runs_experts(now) ||
          classes.of(now.name).bound == Boundness::compute) {
        Task& task = graph.task(id);
        task.duration = floor + scaled(now.duration - floor, 1. / static_cast<double>(gpus_));
        task.flops /= static_cast<double>(gpus_);
        ++effect.changed;
      }
      if (!is_attention) continue;
      const std::int64_t tokens = std::max(step->tokens(), step->sequences + step->prompts);
      const Bytes bytes = scaled(token_, static_cast<double>(tokens));
      Task sum{.duration = kReduced * network.time(Operation::all_reduce, bytes),
               .bytes = bytes,
               .step = now.step,
               .phase = now.phase};
      sum.kind = TaskKind::collective;
      sum.name = graph.names().intern("all-reduces of a layer");
      graph.insert_behind(id, sum);
      exchanged += sum.duration;
      ++layers, ++effect.changed;
    }
    if (layers == 0) throw Error("no step has a kernel known as attention, which every layer has");
    effect.summary = fmt::format("{} GPUs share each layer, for {} of all-reduces behind {}", gpus_,
                                 to_text(exchanged), counted(layers, "kernel") + " of attention");
    effect.figures = {{"transfers", exchanged}};
    effect.transfers = network.doubt();
    effect.assumptions = network.assumed();
    effect.assumptions.emplace_back(
        "products, experts and attention take their part of the time, but not less than the "
        "shortest kernel; each kernel of attention is a layer with two all-reduces, which nothing "
        "overlaps; keys and values have at least as many heads as GPUs share them");
    effect.doubts.emplace_back(
        "engines sum short messages by kernels of their own, which the network's model does not "
        "know");
    return effect;
  }

  static Nanoseconds shortest_kernel(const Graph& graph) {
    Nanoseconds least = Nanoseconds::max();
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const Task& task = graph.task(TaskId{i});
      if (task.kind == TaskKind::kernel && task.duration > 0ns && !graph.removed(TaskId{i}))
        least = std::min(least, task.duration);
    }
    return least;
  }

  Nanoseconds time_of(const SchemeTransfer& transfer, Communicators& networks) const {
    if (transfer.ranks <= 1) return 0ns;
    Communicator& network = networks.among(transfer.ranks, transfer.stride);
    if (transfer.operation != Operation::all_reduce || !sequence_parallel_)
      return transfer.times * network.time(transfer.operation, transfer.bytes);
    return network.time(Operation::reduce_scatter, transfer.bytes) +
           network.time(Operation::all_gather, transfer.bytes);
  }

  Effect effect_of(const DividedModel& model, const Communicators& networks) const {
    Effect effect;
    effect.changed = model.changed();
    effect.summary =
        fmt::format("{} GPUs share each of {} ({}), for {} of collectives a step", gpus_,
                    counted(model.blocks(), "block"), scheme_, to_text(model.transfer_per_step()));
    effect.figures = {{"transfer_per_step", model.transfer_per_step()},
                      {"blocks", static_cast<double>(model.blocks())}};
    effect.transfers = networks.doubt();
    effect.assumptions = networks.assumed();
    effect.assumptions.emplace_back(
        "products take their part of the time, but not less than the shortest kernel; collectives "
        "do not overlap with them, and the GPUs that share a layer are neighbors on the machine");
    effect.assumptions.emplace_back(
        "the host launches as many kernels as before, and memory in use when the recording began "
        "holds parameters and their states");
    return effect;
  }

  std::int64_t gpus_ = 8, depth_ = 2, blocks_ = 0, heads_ = 0;
  std::string scheme_ = "1d";
  bool sequence_parallel_ = false;
  NetworkSettings network_;
  Bytes activation_{}, weights_{}, token_{};
};

}  // namespace

TransformEntry tensor_parallel_entry() {
  return {.make = create<TensorParallel>,
          .assumes =
              "Several GPUs share the matrix products of every block; in steps of an engine that "
              "serves, each kernel of attention stands for one. Products take their part of the "
              "time; work between them stays whole in 1d, unless sequence_parallel divides it, "
              "and is divided in the other schemes. After each block of each pass come the "
              "collectives of the scheme (two all-reduces of the activations in 1d), as the "
              "network's model prices them; the next block waits for them. Parameters, gradients "
              "and optimizer state are divided, activations except in plain 1d. Sizes must be "
              "given, because traces do not record the shapes of a model.",
          .advice = {.why_not = "say how many GPUs share a layer, and the sizes of the model: "
                                "tensor_parallel:gpus=8,machine=dgx-a100,activation_bytes=64MB"}};
}

}  // namespace foretrace
