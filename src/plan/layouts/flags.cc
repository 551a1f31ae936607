#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <utility>

#include "plan/plan.h"

namespace foretrace {
namespace {

class Flags {
 public:
  void add(const std::string& name, const std::string& value = "") {
    flags_.push_back(name + (value.empty() ? "" : " " + value));
  }
  void add(const std::string& name, std::int64_t value) { add(name, std::to_string(value)); }
  void add_above_one(const std::string& name, std::int64_t value) {
    if (value > 1) add(name, value);
  }
  std::vector<std::string> take() { return std::move(flags_); }

 private:
  std::vector<std::string> flags_;
};

/// Megatron-LM selects interleaving by the number of chunks alone.
bool megatron_runs(const Layout& layout) {
  return layout.pipeline == 1 || layout.schedule == "1f1b" || layout.schedule == "interleaved";
}

std::vector<std::string> megatron_flags(const Layout& layout) {
  Flags flags;
  flags.add("--tensor-model-parallel-size", layout.tensor);
  flags.add("--pipeline-model-parallel-size", layout.pipeline);
  flags.add_above_one("--context-parallel-size", layout.context);
  flags.add_above_one("--expert-model-parallel-size", layout.expert);
  flags.add_above_one("--num-virtual-stages-per-pipeline-rank", layout.virtual_stages);
  if (layout.embedding_is_layer && layout.pipeline > 1) {
    flags.add("--account-for-embedding-in-pipeline-split");
    flags.add("--account-for-loss-in-pipeline-split");
  }
  flags.add("--micro-batch-size", layout.micro_batch);
  flags.add("--global-batch-size", layout.global_batch);
  if (layout.sequence_parallel) flags.add("--sequence-parallel");
  if (layout.recompute != "none") flags.add("--recompute-granularity", layout.recompute);
  if (layout.recompute == "full") {
    flags.add("--recompute-method", "uniform");
    flags.add("--recompute-num-layers", 1);
  }
  if (layout.precision == "bf16" || layout.precision == "fp16") flags.add("--" + layout.precision);
  if (layout.precision == "fp8") flags.add("--bf16"), flags.add("--fp8-format", "hybrid");
  if (layout.overlaps_gradients && layout.data > 1) flags.add("--overlap-grad-reduce");
  if (layout.zero >= 1) flags.add("--use-distributed-optimizer");
  if (layout.zero >= 2) {
    flags.add("--use-megatron-fsdp");
    flags.add("--data-parallel-sharding-strategy",
              layout.zero == 2 ? "optim_grads" : "optim_grads_params");
  }
  return flags.take();
}

constexpr std::array<std::pair<std::string_view, const char*>, 5> kTorchSchedules = {
    {{"1f1b", "1F1B"},
     {"interleaved", "Interleaved1F1B"},
     {"gpipe", "GPipe"},
     {"zb_v", "ZBVZeroBubble"},
     {"dualpipe_v", "DualPipeV"}}};

auto torch_schedule(const Layout& layout) {
  const bool is_interleaved = layout.schedule == "1f1b" && layout.virtual_stages > 1;
  const std::string name = is_interleaved ? "interleaved" : layout.schedule;
  return std::ranges::find_if(kTorchSchedules, [&](const auto& one) { return one.first == name; });
}

/// torchtitan has no sharded optimizer with unsharded gradients, and splits sequences wherever it
/// splits tensors.
bool torchtitan_runs(const Layout& layout) {
  return layout.zero != 1 && (layout.tensor == 1 || layout.sequence_parallel) &&
         (layout.pipeline == 1 || torch_schedule(layout) != kTorchSchedules.end());
}

std::vector<std::string> torchtitan_flags(const Layout& layout) {
  Flags flags;
  const auto degree = [&](const char* name, std::int64_t value) {
    flags.add(fmt::format("--parallelism.{}_degree", name), value);
  };
  degree("data_parallel_replicate", layout.zero == 0 ? layout.data : 1);
  degree("data_parallel_shard", layout.zero == 0 ? 1 : layout.data);
  if (layout.zero == 2) flags.add("--parallelism.fsdp_reshard_after_forward", "never");
  degree("tensor_parallel", layout.tensor);
  if (layout.context > 1) degree("context_parallel", layout.context);
  if (layout.expert > 1) degree("expert_parallel", layout.expert);
  // Without a pipeline, gradients are accumulated over the batches of a rank.
  flags.add("--training.local_batch_size",
            layout.pipeline > 1 ? layout.global_batch / layout.data : layout.micro_batch);
  flags.add("--training.global_batch_size", layout.global_batch);
  if (layout.pipeline > 1) {
    degree("pipeline_parallel", layout.pipeline);
    flags.add("--parallelism.pipeline_parallel_schedule", torch_schedule(layout)->second);
    flags.add("--parallelism.pipeline_parallel_microbatch_size", layout.micro_batch);
  }
  flags.add("--activation_checkpoint.mode", layout.recompute);
  return flags.take();
}

}  // namespace

const std::vector<LaunchProgram>& launch_programs() {
  static const std::vector<LaunchProgram> programs = {
      {"Megatron-LM", megatron_runs, megatron_flags},
      {"torchtitan", torchtitan_runs, torchtitan_flags}};
  return programs;
}

}  // namespace foretrace
