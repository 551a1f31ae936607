#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/fields/assignments.h"
#include "foretrace/error.h"
#include "price/price.h"
#include "schedule/schedule.h"

namespace foretrace {

std::vector<std::string_view> framework_names() {
  return {
#define FRAMEWORK(name, ...) #name,
#include "price/frameworks.def"
#undef FRAMEWORK
  };
}

void Layout::describe(Fields& fields) {
  fields.integer("tp", tensor, "Tensor parallel ranks", 1);
  fields.integer("pp", pipeline, "Pipeline stages", 1);
  fields.integer("dp", data, "Data parallel ranks", 1);
  fields.integer("cp", context, "Context parallel ranks: each has a part of the sequence", 1);
  fields.integer("ep", expert, "Expert parallel ranks, taken from the data parallel ones", 1);
  fields.integer("etp", expert_tensor,
                 "Tensor parallel ranks that share an expert; 0: tp if ep is 1, and else 1", 0);
  fields.integer("virtual_stages", virtual_stages, "Parts of the model on each stage", 1);
  fields.integer("flushes", flushes, "How often the pipeline drains in a step", 1);
  fields.integer("micro_batch", micro_batch, "Samples of a micro-batch", 1);
  fields.integer("global_batch", global_batch, "Samples of a step over all ranks", 1);
  fields.text("schedule", schedule, "Pipeline schedule");
  fields.choice("recompute", recompute, {"none", "selective", "pointwise", "full"},
                "Activations that the backward pass recomputes instead of keeping them: those of "
                "attention, of norms and activation functions too, or all");
  fields.number("recompute_share", recompute_share, "Share of the layers for recompute=full", 0, 1);
  fields.choice("framework", framework, framework_names(),
                "What keeps weights, gradients and optimizer state in memory");
  fields.choice("precision", precision, {"bf16", "fp16", "fp32", "tf32", "fp8", "fp4"},
                "Precision of matrix products");
  fields.integer("zero", zero,
                 "Sharded over data parallel ranks: 1 optimizer, 2 gradients, 3 weights", 0, 3);
  fields.integer("replicas", replicas,
                 "Groups of data parallel ranks that each have all shards (HSDP, HYBRID_SHARD)", 1);
  fields.flag("sequence_parallel", sequence_parallel,
              "Norms and dropout are split over tensor parallel ranks");
  fields.flag("fused_attention", fused_attention, "Scores never reach memory (FlashAttention)");
  fields.choice("attention_kernel", attention_kernel,
                {"usual", "flash_attention_2", "flash_attention_3"},
                "Kernel of fused attention, if it is not the program's usual one");
  fields.choice(
      "pointwise", pointwise, {"usual", "fused", "eager"},
      "Norms, rotary embedding and gates: a kernel each (torch.compile, Liger), or one for "
      "each of their operators, if it is not as usual in the framework");
  fields.flag("fused_loss", fused_loss,
              "Logits are made and used in pieces (fused linear cross entropy, Liger)");
  fields.flag("lora", lora, "Weights are frozen; only adapters of low rank learn");
  fields.flag("host_checkpoints", host_checkpoints,
              "The host's memory keeps the inputs of recomputed layers");
  fields.flag("host_optimizer", host_optimizer, "The host's memory keeps the optimizer state");
  fields.flag("overlap_exchanges", overlaps_exchanges,
              "Tensor parallel exchanges are cut into pieces that overlap matrix products");
  fields.choice("dispatcher", dispatcher, {"alltoall", "deepep"},
                "How tokens reach experts: a copy for each expert, or one for each rank and node "
                "(DeepEP, HybridEP)");
  fields.flag("overlap_dispatch", overlaps_dispatch,
              "Tokens travel to experts and back beside the passes of another micro-batch");
  fields.flag("overlap", overlaps_gradients, "Sums of gradients overlap the backward pass");
  fields.integer("drain_after", drain_after,
                 "Without a flush: batches after which the pipeline drains all the same; 0: never",
                 0);
  fields.flag("blocking_launches", blocking_launches,
              "The host waits for each kernel before the next (CUDA_LAUNCH_BLOCKING=1)");
  fields.flag("cuda_graphs", graphs, "CUDA graphs launch the kernels of layers");
  fields.flag("embedding_is_layer", embedding_is_layer,
              "The split into stages counts embedding and head as one block each");
}

void Layout::check() const {
  if (global_batch % (data * micro_batch) != 0)
    throw Error(fmt::format("global_batch: must be a multiple of dp x micro_batch, {} x {}, got {}",
                            data, micro_batch, global_batch));
  if (expert > 1 && (data * context * tensor) % expert != 0)
    throw Error(
        fmt::format("ep: must divide dp x cp x tp, {}, got {}", data * context * tensor, expert));
  if (of_expert() != 1 && of_expert() != tensor)
    throw Error(fmt::format("etp: must be 0, 1 or tp, {}, got {}", tensor, expert_tensor));
  if (expert > 1 && (data * context * tensor) % (expert * of_expert()) != 0)
    throw Error(fmt::format("etp: ep x etp must divide dp x cp x tp, {}, got {} x {}",
                            data * context * tensor, expert, of_expert()));
  if ((data * context) % replicas != 0)
    throw Error(fmt::format("replicas: must divide dp x cp, {}, got {}", data * context, replicas));
  if (micro_batches() % flushes != 0)
    throw Error(fmt::format("flushes: must divide the micro-batches of a rank, {}, got {}",
                            micro_batches(), flushes));
  if (virtual_stages > 1 && pipeline == 1)
    throw Error(
        fmt::format("virtual_stages: must be 1 without a pipeline, got {}", virtual_stages));
  if (!fused_attention && attention_kernel != "usual")
    throw Error("attention_kernel: must be usual if attention is not fused, got " +
                attention_kernel);
  if (graphs && blocking_launches)
    throw Error("cuda_graphs: must be false if launches are blocking");
  if (drain_after > 0 && (pipeline == 1 || find_schedule(schedule)->flushes()))
    throw Error(
        fmt::format("drain_after: needs a pipeline without a flush (pipedream or pipedream_2bw), "
                    "got schedule {}",
                    schedule));
  if (virtual_stages > 1 && micro_batches() / flushes % pipeline != 0)
    throw Error(fmt::format(
        "global_batch: interleaved stages need micro-batches in multiples of pp, {}, got {}",
        pipeline, micro_batches() / flushes));
}

std::string layout_text(Layout layout) {
  Layout usual;
  const nlohmann::json settings = write_json(layout), defaults = write_json(usual);
  nlohmann::json others = nlohmann::json::object();
  for (const auto& [name, value] : settings.items()) {
    if (value != defaults[name]) others[name] = value;
  }
  return assignments_text(others);
}

}  // namespace foretrace
