// DeepSpeed's JSON: data parallelism with ZeRO. The model is the program's, and not in the file.

#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"
#include "launch/registered.h"

namespace foretrace {
namespace {

LaunchSettings read_deepspeed(ConfigReader& config) {
  LaunchSettings said;
  said.layout["framework"] = "deepspeed";
  const std::int64_t stage = config.integer({"zero_optimization.stage"}).value_or(0);
  said.layout["zero"] = stage;
  said.layout["overlap"] = config.flag({"zero_optimization.overlap_comm"}, stage == 3);
  const bool is_bf16 = config.flag({"bf16.enabled", "bfloat16.enabled"});
  const bool is_fp16 = config.flag({"fp16.enabled"});
  if (is_bf16 && is_fp16) throw Error("fp16.enabled: must be false if bf16.enabled is true");
  said.layout["precision"] = is_bf16 ? "bf16" : is_fp16 ? "fp16" : "fp32";
  const std::string device = config.word({"zero_optimization.offload_optimizer.device"}, "none");
  said.layout["host_optimizer"] = device != "none";
  const bool keeps = config.flag({"activation_checkpointing.cpu_checkpointing"});
  if (keeps) said.layout["recompute"] = "full", said.layout["host_checkpoints"] = true;
  if (config.word({"zero_optimization.offload_param.device"}, "none") != "none")
    said.notes.emplace_back("offload_param moves weights in every pass, which is not priced");
  note_not_priced(
      config,
      {"zero_optimization.zero_hpz_partition_size=1", "zero_optimization.zero_quantized_weights",
       "zero_optimization.zero_quantized_gradients", "zero_optimization.mics_shard_size=-1",
       "zero_optimization.cpu_offload", "tensor_parallel.autotp_size=0", "sequence_parallel_size=1",
       "pipeline.stages=auto", "data_types.grad_accum_dtype"},
      said);
  const std::string optimizer = lower_case(config.word({"optimizer.type"}, "adam"));
  if (optimizer.find("adam") == optimizer.npos)
    said.notes.push_back(
        fmt::format("optimizer.type: Adam's state is priced, not {}'s", optimizer));
  said.global_batch = config.integer({"train_batch_size"});
  const auto micro = config.integer({"train_micro_batch_size_per_gpu"});
  said.accumulation = config.integer({"gradient_accumulation_steps"});
  // Two of the three may be missing: accumulation is then 1, and the others follow.
  if (micro)
    said.layout["micro_batch"] = *micro;
  else if (!said.global_batch)
    throw Error(
        "train_batch_size or train_micro_batch_size_per_gpu: must be given, the samples of a step");
  if (!said.accumulation && !said.global_batch) said.accumulation = 1;
  said.micro_batch_follows = !micro && said.global_batch;
  return said;
}

bool deepspeed_runs(const Layout& layout) {
  return layout.tensor * layout.pipeline * layout.context == 1 && layout.expert == 1 &&
         layout.replicas == 1;
}

std::vector<ConfigChange> deepspeed_changes(const Layout& layout) {
  return {{"zero_optimization.stage", std::to_string(layout.zero), "0"},
          {"train_batch_size", std::to_string(layout.global_batch)},
          {"train_micro_batch_size_per_gpu", std::to_string(layout.micro_batch)},
          {"gradient_accumulation_steps", std::to_string(layout.micro_batches()), "1"}};
}

}  // namespace

LaunchProgram deepspeed_program() {
  return {.name = "DeepSpeed",
          .recognizes =
              [](ConfigReader& config) {
                return config.has({"train_batch_size", "train_micro_batch_size_per_gpu",
                                   "zero_optimization.stage", "gradient_accumulation_steps"});
              },
          .read = read_deepspeed,
          .runs = deepspeed_runs,
          .changes = deepspeed_changes};
}

}  // namespace foretrace
