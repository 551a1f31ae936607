// torchtitan's TOML, up to 0.2.2, and its settings as flags. Later releases configure it in Python.

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <utility>

#include "base/parse_number.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "launch/registered.h"
#include "workload/workload.h"

namespace foretrace {
namespace {

constexpr std::array<std::pair<std::string_view, const char*>, 5> kTorchSchedules = {
    {{"1f1b", "1F1B"},
     {"interleaved", "Interleaved1F1B"},
     {"gpipe", "GPipe"},
     {"zb_v", "ZBVZeroBubble"},
     {"dualpipe_v", "DualPipeV"}}};

auto torchtitan_schedule(const Layout& layout) {
  const bool is_interleaved = layout.schedule == "1f1b" && layout.virtual_stages > 1;
  const std::string name = is_interleaved ? "interleaved" : layout.schedule;
  return std::ranges::find_if(kTorchSchedules, [&](const auto& one) { return one.first == name; });
}

std::string torchtitan_model(ConfigReader& config) {
  const std::string family = config.word({"model.name"}), size = config.word({"model.flavor"});
  if (family.empty()) return "";
  const auto presets = presets_recorded_as(family + ' ' + size);
  if (presets.empty())
    throw Error(
        fmt::format("model: the shape of {} {} is not known; give MODEL as well, which then "
                    "counts",
                    family, size));
  return std::string(presets.front());
}

void read_stages(ConfigReader& config, std::int64_t stages, LaunchSettings& said) {
  const std::string schedule = config.word({"parallelism.pipeline_parallel_schedule"}, "1F1B");
  if (stages == 1) return;
  const auto* const known = std::ranges::find_if(
      kTorchSchedules, [&](const auto& one) { return schedule == one.second; });
  if (known == kTorchSchedules.end())
    throw Error(
        fmt::format("parallelism.pipeline_parallel_schedule: '{}' is not priced", schedule));
  said.layout["schedule"] = known->first;
  constexpr std::int64_t kUsualChunks = 2;
  if (known->first != "1f1b" && known->first != "gpipe")
    said.layout["virtual_stages"] = kUsualChunks;
}

/// Its selection recomputes every second matrix product, about a half of each layer, or some
/// layers.
void read_torchtitan_recomputation(ConfigReader& config, LaunchSettings& said) {
  const std::string mode = config.word({"activation_checkpoint.mode"}, "selective");
  said.layout["recompute"] = mode == "none" ? "none" : "full";
  const std::string option = config.word({"activation_checkpoint.selective_ac_option"}, "op");
  const auto every = parse_number<std::int64_t>(option);
  if (option != "op" && (!every || *every < 1))
    throw Error(fmt::format(
        "activation_checkpoint.selective_ac_option: must be op or every how many layers, got '{}'",
        option));
  if (mode == "selective")
    said.layout["recompute_share"] = every ? 1 / static_cast<double>(*every) : .5;
  if (mode != "none" && mode != "selective" && mode != "full")
    throw Error(fmt::format("activation_checkpoint.mode: '{}' is not priced", mode));
}

/// Shards weights; keeps them between the passes where it is told to, or where there are stages.
void read_sharding(ConfigReader& config, std::int64_t stages, std::int64_t others,
                   LaunchSettings& said) {
  const std::int64_t copies = config.integer({"parallelism.data_parallel_replicate_degree"}, 1);
  const std::int64_t shard =
      config.integer({"parallelism.data_parallel_shard_degree"}).value_or(-1);
  const std::string reshard = config.word({"parallelism.fsdp_reshard_after_forward"}, "default");
  const bool keeps = reshard == "never" || (reshard == "default" && stages > 1);
  said.layout["zero"] = shard == 1 ? 0 : keeps ? 2 : 3;
  if (shard > 0) said.gpus = copies * shard * others;
  if (shard != 1) said.layout["replicas"] = copies;
}

LaunchSettings read_torchtitan(ConfigReader& config) {
  LaunchSettings said;
  said.sequence = std::to_string(config.integer({"training.seq_len"}, 2048));
  const std::int64_t tensor = config.integer({"parallelism.tensor_parallel_degree"}, 1);
  const std::int64_t stages = config.integer({"parallelism.pipeline_parallel_degree"}, 1);
  const std::int64_t context = config.integer({"parallelism.context_parallel_degree"}, 1);
  said.layout["tp"] = tensor, said.layout["pp"] = stages, said.layout["cp"] = context;
  said.layout["ep"] = config.integer({"parallelism.expert_parallel_degree"}, 1);
  said.layout["sequence_parallel"] = tensor > 1;
  said.layout["overlap_exchanges"] = config.flag({"parallelism.enable_async_tensor_parallel"});
  said.layout["host_optimizer"] = config.flag({"training.enable_cpu_offload"});
  said.layout["framework"] = "torchtitan";
  const bool is_half = config.word({"training.mixed_precision_param"}, "bfloat16") == "bfloat16";
  const std::string converters = lower_case(config.list("model.converters"));
  const bool is_narrow =
      converters.find("float8") != converters.npos || converters.find("mx") != converters.npos;
  said.layout["precision"] = is_narrow ? "fp8" : is_half ? "bf16" : "fp32";
  read_stages(config, stages, said);
  read_torchtitan_recomputation(config, said);
  read_sharding(config, stages, tensor * stages * context, said);
  const std::int64_t local = config.integer({"training.local_batch_size"}, 8);
  const std::int64_t micro =
      stages > 1 ? config.integer({"parallelism.pipeline_parallel_microbatch_size"}, 1) : local;
  if (local % micro != 0)
    throw Error(
        fmt::format("training.local_batch_size: must be a multiple of the micro-batch, {}, got {}",
                    micro, local));
  said.layout["micro_batch"] = micro;
  const std::int64_t global = config.integer({"training.global_batch_size"}).value_or(-1);
  if (global > 0 && stages > 1) said.local_batch = local;
  if (global > 0)
    said.global_batch = global;
  else
    said.accumulation = local / micro;
  const std::string compiled = config.list("compile.components");
  const bool is_compiled = compiled.empty() || compiled.find("model") != compiled.npos;
  if (!config.flag({"compile.enable"}) || !is_compiled) said.layout["pointwise"] = "eager";
  note_not_priced(
      config,
      {"parallelism.disable_loss_parallel", "parallelism.pipeline_parallel_layers_per_stage"},
      said);
  if (config.word({"training.dtype"}, "float32") != "float32")
    said.notes.emplace_back("training.dtype: weights and optimizer state in float32 are priced");
  if (config.word({"training.mixed_precision_reduce"}, "float32") != "float32")
    said.notes.emplace_back("training.mixed_precision_reduce: gradients in float32 are priced");
  try {
    said.model = torchtitan_model(config);
  } catch (const Error& error) {
    said.notes.emplace_back(error.what());
  }
  return said;
}

/// torchtitan has no sharded optimizer with unsharded gradients, and splits sequences wherever it
/// splits tensors.
bool torchtitan_runs(const Layout& layout) {
  return layout.zero != 1 && (layout.zero >= 2 || layout.replicas == 1) &&
         layout.expert_tensor == 0 && (layout.tensor == 1 || layout.sequence_parallel) &&
         (layout.pipeline == 1 || torchtitan_schedule(layout) != kTorchSchedules.end());
}

std::vector<ConfigChange> torchtitan_changes(const Layout& layout) {
  std::vector<ConfigChange> all;
  const auto add = [&](const std::string& key, std::int64_t value, const char* usual = "") {
    all.push_back({key, std::to_string(value), usual});
  };
  const auto degree = [&](const char* name, std::int64_t value, const char* usual = "") {
    add(fmt::format("parallelism.{}_degree", name), value, usual);
  };
  const auto word = [&](const char* key, const std::string& value, const char* usual = "") {
    all.push_back({key, value, usual, true});
  };
  const std::int64_t copies = layout.zero == 0 ? layout.data : layout.replicas;
  degree("data_parallel_replicate", copies);
  degree("data_parallel_shard", layout.data / copies);
  const bool keeps = layout.zero == 2 && layout.pipeline == 1;
  const bool frees = layout.zero == 3 && layout.pipeline > 1;
  word("parallelism.fsdp_reshard_after_forward",
       keeps   ? "never"
       : frees ? "always"
               : "default",
       "default");
  all.push_back({"compile.enable", layout.pointwise == "eager" ? "false" : "true", "false"});
  degree("tensor_parallel", layout.tensor);
  degree("context_parallel", layout.context, "1");
  degree("expert_parallel", layout.expert, "1");
  // Without a pipeline, gradients are accumulated over the batches of a rank.
  add("training.local_batch_size", layout.pipeline > 1
                                       ? layout.global_batch / layout.data / layout.flushes
                                       : layout.micro_batch);
  add("training.global_batch_size", layout.global_batch);
  degree("pipeline_parallel", layout.pipeline, "1");
  if (layout.pipeline > 1) {
    word("parallelism.pipeline_parallel_schedule", torchtitan_schedule(layout)->second);
    add("parallelism.pipeline_parallel_microbatch_size", layout.micro_batch);
  }
  const bool is_half = layout.recompute == "full" && layout.recompute_share < 1;
  word("activation_checkpoint.mode", is_half ? "selective" : layout.recompute);
  return all;
}

}  // namespace

LaunchProgram torchtitan_program() {
  return {.name = "torchtitan",
          .recognizes =
              [](ConfigReader& config) {
                return config.has({"training.seq_len", "training.local_batch_size",
                                   "parallelism.tensor_parallel_degree",
                                   "parallelism.data_parallel_shard_degree"});
              },
          .read = read_torchtitan,
          .runs = torchtitan_runs,
          .changes = torchtitan_changes,
          .has_flags = true};
}

}  // namespace foretrace
