// The command that starts an engine with a configuration, by flags recalled from its releases of
// 2025 and 2026. Settings without a flag are named with what to do about them.

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <span>

#include "base/wording.h"
#include "question/serve/asked.h"
#include "studies/serve/serve_plan.h"

namespace foretrace {
namespace {

/// A setting of EngineSettings, or "kv_dtype", "utilization", "tensor", "data", "expert".
struct FlagName {
  std::string_view setting, flag;
};

struct Program {
  std::string_view scheduler, start, between, end;
  std::span<const FlagName> flags;
  std::string_view half_cache;  ///< Its word for a cache in half precision.
};

constexpr FlagName kVllm[] = {{"tensor", "--tensor-parallel-size"},
                              {"data", "--data-parallel-size"},
                              {"max_num_seqs", "--max-num-seqs"},
                              {"max_num_batched_tokens", "--max-num-batched-tokens"},
                              {"cache", "--kv-cache-dtype"},
                              {"max_model_len", "--max-model-len"},
                              {"long_prefill_token_threshold", "--long-prefill-token-threshold"},
                              {"block_size", "--block-size"},
                              {"num_blocks", "--num-gpu-blocks-override"},
                              {"utilization", "--gpu-memory-utilization"}};
constexpr FlagName kSglang[] = {{"tensor", "--tp-size"},
                                {"data", "--dp-size"},
                                {"expert", "--ep-size"},
                                {"max_num_seqs", "--max-running-requests"},
                                {"max_num_batched_tokens", "--chunked-prefill-size"},
                                {"cache", "--kv-cache-dtype"},
                                {"max_model_len", "--context-length"},
                                {"block_size", "--page-size"},
                                {"conservativeness", "--schedule-conservativeness"},
                                {"utilization", "--mem-fraction-static"}};
constexpr FlagName kTrtllm[] = {{"tensor", "tensor_parallel_size"},
                                {"expert", "moe_expert_parallel_size"},
                                {"max_num_seqs", "max_batch_size"},
                                {"max_num_batched_tokens", "max_num_tokens"},
                                {"cache", "kv_cache_config.dtype"},
                                {"block_size", "kv_cache_config.tokens_per_block"},
                                {"utilization", "kv_cache_config.free_gpu_memory_fraction"}};
constexpr Program kPrograms[] = {
    {"vllm", "vllm serve MODEL", " ", "", kVllm, "auto"},
    {"sglang", "python -m sglang.launch_server --model-path MODEL", " ", "", kSglang, "auto"},
    {"trtllm", "trtllm-serve MODEL --extra_llm_api_options FILE, where FILE has", ": ", ",",
     kTrtllm, "auto"}};

class Launch {
 public:
  Launch(const Program& program, ServePlanReport& report)
      : program_(program), report_(report), text_(program.start) {}

  bool has(std::string_view setting) const {
    return std::ranges::find(program_.flags, setting, &FlagName::setting) != program_.flags.end();
  }
  void add(std::string_view setting, const std::string& value) {
    const auto found = std::ranges::find(program_.flags, setting, &FlagName::setting);
    if (found == program_.flags.end()) return leave(setting, value, "it has no such option");
    add_text(std::string(found->flag) + std::string(program_.between) + value);
  }
  void add_text(const std::string& text) {
    text_ += (count_++ > 0 ? std::string(program_.end) : "") + " " + text;
  }
  void leave(std::string_view setting, const std::string& value, const std::string& why) {
    report_.not_written.push_back(fmt::format("{}={}: {}", setting, value, why));
  }
  const std::string& text() const { return text_; }

 private:
  const Program& program_;
  ServePlanReport& report_;
  std::string text_;
  int count_ = 0;
};

/// Ranks of data parallel attention count among the tensor parallel GPUs of SGLang and
/// TensorRT-LLM, and beside those of vLLM.
void add_ranks(const ServeQuestion& asked, std::string_view scheduler, bool is_one_server,
               Launch& launch) {
  const std::int64_t devices = asked.tensor * asked.data;
  const bool is_vllm = scheduler == "vllm";
  launch.add("tensor", std::to_string(is_vllm ? asked.tensor : devices));
  if (asked.data > 1 && scheduler == "trtllm") {
    if (asked.tensor == 1)
      launch.add_text("enable_attention_dp: true");
    else
      launch.leave("data", std::to_string(asked.data), "its attention has one rank for each GPU");
  } else if (asked.data > 1) {
    launch.add("data", std::to_string(asked.data));
    if (scheduler == "sglang") launch.add_text("--enable-dp-attention");
  } else if (is_one_server) {
    launch.add("data", std::to_string(asked.replicas));
  }
  if (asked.expert > 1 && is_vllm)
    launch.add_text("--enable-expert-parallel");
  else if (asked.expert > 1)
    launch.add("expert", std::to_string(asked.expert));
}

void add_engine(const ServeQuestion& asked, Launch& launch) {
  serve::EngineSettings defaults, given = engine_settings_of(asked.engine);
  const nlohmann::json before = write_json(defaults), after = write_json(given);
  for (const std::string& name : setting_order(given)) {
    if (name == "scheduler" || before[name] == after[name]) continue;
    const std::string value =
        after[name].is_string() ? after[name].get<std::string>() : after[name].dump();
    launch.add(name, value);
  }
}

}  // namespace

void add_launch(std::int64_t per_node, bool has_experts, ServePlanReport& report) {
  const ServeQuestion& asked = report.ranked.front().asked;
  const std::string scheduler = engine_settings_of(asked.engine).scheduler;
  const Program& program = *std::ranges::find(kPrograms, scheduler, &Program::scheduler);
  Launch launch(program, report);
  const std::int64_t devices = asked.tensor * asked.data;
  // A server with several ranks sends requests to the least busy one itself, if they share nothing.
  const bool is_one_server = asked.replicas > 1 && !has_experts && launch.has("data") &&
                             asked.replicas * devices <= per_node && asked.prefill_replicas == 0;
  add_ranks(asked, scheduler, is_one_server, launch);
  add_engine(asked, launch);
  if (asked.cache == "fp4")
    launch.leave("cache", "fp4", "no option is known");
  else
    launch.add("cache", asked.cache == "fp8" ? "fp8" : std::string(program.half_cache));
  if (asked.utilization > 0) launch.add("utilization", to_text(asked.utilization));
  if (asked.replicas > 1 && !is_one_server)
    launch.leave("replicas", std::to_string(asked.replicas), "so many servers behind a router");
  if (asked.prefill_replicas > 0)
    launch.leave("prefill_replicas", std::to_string(asked.prefill_replicas),
                 "more servers, which compute prompts and send their cache on");
  if (devices > per_node)
    launch.leave("hosts", std::to_string((devices + per_node - 1) / per_node),
                 "how the hosts of a server find each other");
  if (asked.weights != "bf16")
    launch.leave("weights", asked.weights, "MODEL must be a checkpoint in this precision");
  report.launch = launch.text();
}

}  // namespace foretrace
