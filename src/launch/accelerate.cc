// Accelerate's YAML for FSDP. Model and batch are the trainer's, and not in the file.

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <utility>

#include "base/wording.h"
#include "foretrace/error.h"
#include "launch/registered.h"

namespace foretrace {
namespace {

/// Names and numbers of FSDP's strategies, and how much is sharded.
struct Strategy {
  std::string_view name, number;
  std::int64_t zero;
};
constexpr std::array<Strategy, 5> kStrategies = {{{"FULL_SHARD", "1", 3},
                                                  {"SHARD_GRAD_OP", "2", 2},
                                                  {"NO_SHARD", "3", 0},
                                                  {"HYBRID_SHARD", "4", 3},
                                                  {"HYBRID_SHARD_ZERO2", "5", 2}}};

/// Hybrid strategies shard within a host alone. The second version of FSDP has a switch instead.
void read_strategy(ConfigReader& config, LaunchSettings& said) {
  if (config.integer({"fsdp_config.fsdp_version"}, 1) > 1) {
    said.layout["zero"] = config.flag({"fsdp_config.fsdp_reshard_after_forward"}, true) ? 3 : 2;
    return;
  }
  const std::string word = config.word({"fsdp_config.fsdp_sharding_strategy"}, "FULL_SHARD");
  const auto* const found = std::ranges::find_if(
      kStrategies, [&](const Strategy& one) { return one.name == word || one.number == word; });
  if (found == kStrategies.end())
    throw Error(fmt::format("fsdp_config.fsdp_sharding_strategy: '{}' is not known", word));
  said.layout["zero"] = found->zero;
  if (found->name.starts_with("HYBRID"))
    said.layout["replicas"] = config.integer({"num_machines"}, 1);
}

LaunchSettings read_accelerate(ConfigReader& config) {
  LaunchSettings said;
  const std::string kind = config.word({"distributed_type"});
  if (kind != "FSDP" && kind != "MULTI_GPU" && kind != "NO")
    throw Error(fmt::format(
        "distributed_type: must be FSDP, MULTI_GPU or NO, got '{}'; for DeepSpeed, give its JSON",
        kind));
  said.layout["framework"] = "fsdp";
  said.layout["zero"] = 0;
  if (kind == "FSDP") read_strategy(config, said);
  const std::string precision = config.word({"mixed_precision"}, "no");
  said.layout["precision"] = precision == "no" ? "fp32" : precision;
  said.layout["recompute"] =
      config.flag({"fsdp_config.fsdp_activation_checkpointing"}) ? "full" : "none";
  const std::string compiler = lower_case(config.word({"dynamo_config.dynamo_backend"}, "no"));
  if (compiler == "inductor") said.layout["pointwise"] = "fused";
  if (config.flag({"fsdp_config.fsdp_offload_params"}))
    said.notes.emplace_back("fsdp_offload_params moves weights in every pass, which is not priced");
  said.gpus = config.known_integer({"num_processes"});
  said.notes.emplace_back(
      "the batch is not in the file; a micro-batch of 1 sample is priced unless --layout says "
      "micro_batch and global_batch");
  return said;
}

bool accelerate_runs(const Layout& layout) {
  return layout.tensor * layout.pipeline * layout.context * layout.expert == 1 &&
         (layout.replicas == 1 || layout.zero >= 2) && layout.zero != 1 &&
         (layout.recompute == "none" || layout.recompute == "full");
}

std::vector<ConfigChange> accelerate_changes(const Layout& layout) {
  const auto* const found = std::ranges::find_if(kStrategies, [&](const Strategy& one) {
    return one.zero == layout.zero && one.name.starts_with("HYBRID") == (layout.replicas > 1);
  });
  return {{"num_processes", std::to_string(layout.data)},
          {"fsdp_config.fsdp_sharding_strategy", std::string(found->name), "FULL_SHARD", true},
          {"fsdp_config.fsdp_reshard_after_forward", layout.zero == 3 ? "true" : "false", "true"},
          {"fsdp_config.fsdp_activation_checkpointing",
           layout.recompute == "full" ? "true" : "false", "false"}};
}

}  // namespace

LaunchProgram accelerate_program() {
  return {.name = "Accelerate",
          .recognizes = [](ConfigReader& config) { return config.has({"distributed_type"}); },
          .read = read_accelerate,
          .runs = accelerate_runs,
          .changes = accelerate_changes};
}

}  // namespace foretrace
