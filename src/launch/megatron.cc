// Megatron-LM's arguments, on a command line, in YAML or as it prints them; Megatron-Bridge's and
// NeMo's YAML, which has most of the names in sections.

#include <algorithm>
#include <fmt/core.h>

#include "base/parse_number.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "launch/registered.h"
#include "workload/workload.h"

namespace foretrace {
namespace {

/// A SwiGLU layer without a width has 8/3 of the hidden size, cut to a multiple of 64.
std::int64_t usual_ffn(std::int64_t hidden, bool is_gated) {
  return is_gated ? hidden * 4 * 2 / 3 / 64 * 64 : 4 * hidden;
}

/// Vocabulary of the tokenizer that the file names, where it states no size.
std::int64_t vocabulary_of(ConfigReader& config) {
  if (const auto size = config.integer({".vocab_size", ".padded_vocab_size"})) return *size;
  constexpr std::int64_t kGpt2 = 50257;
  const ConfigValue* const kind = config.find({".tokenizer_type"});
  if (kind != nullptr ? kind->text.starts_with("GPT2BPE") : config.has({".merge_file"}))
    return kGpt2;
  constexpr std::int64_t kLlama2 = 32000;
  if (kind != nullptr && kind->text == "Llama2Tokenizer") return kLlama2;
  const ConfigValue* const named = config.find({".tokenizer_model", ".tokenizer_name_or_path"});
  const std::string tokenizer = named == nullptr ? "" : named->text;
  const auto presets = presets_recorded_as(tokenizer.substr(tokenizer.rfind('/') + 1));
  if (!presets.empty())
    return write_json(*find_workload(presets.front())).at("vocabulary").get<std::int64_t>();
  throw Error("vocab_size: must be in the file, because the tokenizer, which has it, is not read");
}

/// How many of the first layers are dense: "1", "([0]*3+[1]*58)", "[0,0,0,1,1]".
std::int64_t dense_layers(const std::string& text, std::int64_t layers) {
  if (text.find('[') == std::string::npos) {
    if (text != "1")
      throw Error(
          fmt::format("moe_layer_freq: must be 1 or a list of dense layers followed by "
                      "layers with experts, got '{}'",
                      text));
    return 0;
  }
  std::string bits;
  for (std::size_t at = text.find('['); at != std::string::npos; at = text.find('[', at)) {
    const std::size_t end = std::min(text.find(']', at), text.size() - 1);
    std::string group;
    for (; at < end; ++at) {
      if (text[at] == '0' || text[at] == '1') group += text[at];
    }
    std::int64_t times = 1;
    if (end + 1 < text.size() && text[end + 1] == '*') times = std::atoll(text.c_str() + end + 2);
    for (std::int64_t i = 0; i < std::min(times, layers); ++i) bits += group;
  }
  const auto first = static_cast<std::int64_t>(std::min(bits.find('1'), bits.size()));
  if (std::ssize(bits) != layers || bits.find('0', static_cast<std::size_t>(first)) != bits.npos)
    throw Error(
        fmt::format("moe_layer_freq: must be {} layers, dense ones first, got '{}'", layers, text));
  return first;
}

void read_attention(ConfigReader& config, nlohmann::json& model) {
  const bool is_grouped =
      config.form() != ConfigForm::arguments && config.form() != ConfigForm::log;
  if (config.flag({".group_query_attention"}, is_grouped))
    if (const auto groups = config.integer({".num_query_groups"}); groups || !is_grouped)
      model["kv_heads"] = groups.value_or(1);
  if (const auto width = config.integer({".kv_channels"})) model["head_size"] = *width;
  model["qk_norm"] = config.flag({".qk_layernorm"});
  model["qkv_biases"] = config.flag({".add_qkv_bias"});
  if (!config.flag({".multi_latent_attention"}) && !config.has({".kv_lora_rank"})) return;
  const std::int64_t rotary = config.integer({".qk_pos_emb_head_dim"}, 64);
  model["query_rank"] = config.integer({".q_lora_rank"}).value_or(0);
  model["kv_rank"] = config.integer({".kv_lora_rank"}, 32);
  model["head_size"] = config.integer({".qk_head_dim"}, 128) + rotary;
  model["rotary_size"] = rotary, model["value_size"] = config.integer({".v_head_dim"}, 128);
  model.erase("kv_heads");
}

void read_experts(ConfigReader& config, nlohmann::json& model) {
  const auto experts = config.integer({".num_experts", ".num_moe_experts"});
  if (!experts || *experts == 0) return;
  model["experts"] = *experts;
  model["active_experts"] = config.integer({".moe_router_topk"}, 2);
  if (const auto width = config.integer({".moe_ffn_hidden_size"})) model["expert_ffn"] = *width;
  if (const auto width = config.integer({".moe_shared_expert_intermediate_size"}))
    model["shared_ffn"] = *width;
  model["score_bias"] = config.flag({".moe_router_enable_expert_bias"});
  model["dense_layers"] =
      dense_layers(config.word({".moe_layer_freq"}, "1"), model.at("layers").get<std::int64_t>());
}

nlohmann::json megatron_model(ConfigReader& config) {
  nlohmann::json model;
  const std::int64_t hidden = config.integer({".hidden_size"}, 1);
  const bool is_gated = config.flag({".swiglu", ".gated_linear_unit"});
  model["layers"] = config.integer({".num_layers"}, 1), model["hidden"] = hidden;
  model["heads"] = config.integer({".num_attention_heads"}, 1), model["gated"] = is_gated;
  model["ffn"] = config.integer({".ffn_hidden_size"}, usual_ffn(hidden, is_gated));
  model["vocabulary"] = vocabulary_of(config);
  model["sequence"] = config.stated({".seq_length", ".encoder_seq_length"}, "tokens of a sample");
  const bool is_bridge = config.has({".share_embeddings_and_output_weights"});
  model["tied"] = is_bridge ? config.flag({".share_embeddings_and_output_weights"})
                            : !config.flag({".untie_embeddings_and_output_weights"});
  model["biases"] = config.flag({".add_bias_linear"}, !config.flag({".disable_bias_linear"}));
  model["dropout"] =
      config.number({".attention_dropout"}, .1) > 0 || config.number({".hidden_dropout"}, .1) > 0;
  const bool turns = config.flag({".use_rotary_position_embeddings"});
  if (config.word({".position_embedding_type"}, turns ? "rope" : "learned_absolute") ==
      "learned_absolute")
    model["positions"] = config.integer({".max_position_embeddings"}, model.at("sequence"));
  read_attention(config, model);
  read_experts(config, model);
  if (const auto further = config.integer({".mtp_num_layers"})) model["mtp_layers"] = *further;
  return model;
}

std::string precision_of_job(ConfigReader& config) {
  const std::string mixed = lower_case(config.word({".mixed_precision", ".precision"}));
  const std::string narrow =
      config.word({".fp8_format", ".fp8"}, mixed.find("fp8") != mixed.npos ? "fp8" : "");
  if (config.has({".fp4_format", ".fp4"}) || mixed.find("fp4") != mixed.npos) return "fp4";
  if (!narrow.empty() && lower_case(narrow) != "false") return "fp8";
  if (config.flag({".bf16"}) && config.flag({".fp16"}))
    throw Error("bf16 and fp16: must not both be given");
  if (config.flag({".bf16"}) || mixed.starts_with("bf16")) return "bf16";
  return config.flag({".fp16"}) || mixed.starts_with("fp16") || mixed.starts_with("16") ? "fp16"
                                                                                        : "fp32";
}

void read_megatron_recomputation(ConfigReader& config, std::int64_t layers, LaunchSettings& said) {
  const std::string granularity =
      config.word({".recompute_granularity", ".activations_checkpoint_granularity"});
  const std::string modules = config.list(".recompute_modules");
  said.layout["recompute"] = "none";
  if (granularity == "selective" || config.flag({".recompute_activations"}))
    said.layout["recompute"] = modules.find("layernorm") != modules.npos ||
                                       modules.find("mlp") != modules.npos ||
                                       modules.find("act") != modules.npos
                                   ? "pointwise"
                                   : "selective";
  if (granularity != "full") return;
  said.layout["recompute"] = "full";
  // "uniform" keeps the input of every group of layers, and recomputes all of them.
  const std::int64_t count = config.integer({".recompute_num_layers"}, 1);
  if (config.word({".recompute_method"}, "uniform") != "block") return;
  const std::int64_t stages = said.layout.value("pp", std::int64_t{1}) *
                              said.layout.value("virtual_stages", std::int64_t{1});
  const double share = static_cast<double>(count * stages) / static_cast<double>(layers);
  said.layout["recompute_share"] = std::min(1., share);
}

std::int64_t chunks_of(ConfigReader& config, std::int64_t layers, std::int64_t stages) {
  if (const auto chunks = config.integer(
          {".num_virtual_stages_per_pipeline_rank", ".virtual_pipeline_model_parallel_size"}))
    return *chunks;
  const auto each = config.integer({".num_layers_per_virtual_pipeline_stage"});
  if (!each) return 1;
  if (*each < 1 || layers % (stages * *each) != 0)
    throw Error(fmt::format(
        "num_layers_per_virtual_pipeline_stage: must divide the {} layers of a stage, got {}",
        layers / stages, *each));
  return layers / (stages * *each);
}

std::int64_t sharding_of(ConfigReader& config) {
  const std::string strategy = config.word({".data_parallel_sharding_strategy"}, "no_shard");
  const bool has_own = config.flag({".use_megatron_fsdp", ".use_custom_fsdp"});
  if (has_own && strategy == "optim_grads_params") return 3;
  if (has_own && strategy == "optim_grads") return 2;
  return config.flag({".use_distributed_optimizer"}) || (has_own && strategy == "optim") ? 1 : 0;
}

/// Graphs of whole layers. Those of parts of layers leave the rest to the host.
bool has_graphs(ConfigReader& config) {
  const std::string kind = config.word({".cuda_graph_impl"}, "none");
  const bool is_old = config.flag({".enable_cuda_graph", ".external_cuda_graph"});
  return (is_old || kind != "none") && !config.has({".cuda_graph_scope"});
}

void read_dispatch(ConfigReader& config, LaunchSettings& said) {
  const std::string dispatcher = config.word({".moe_token_dispatcher_type"}, "allgather");
  said.layout["dispatcher"] = dispatcher == "flex" ? "deepep" : "alltoall";
  said.layout["overlap_dispatch"] = config.flag({".overlap_moe_expert_parallel_comm"});
  if (dispatcher == "allgather" && said.layout["ep"] > 1)
    said.notes.emplace_back(
        "moe_token_dispatcher_type: allgather, which sends each token to all ranks, is not priced, "
        "but alltoall");
}

void read_devices(ConfigReader& config, LaunchSettings& said) {
  said.gpus = config.known_integer({".world_size"});
  const auto nodes = config.known_integer({".nnodes", ".num_nodes", ".nodes"});
  auto of_node = config.known_integer({".nproc_per_node", ".gpus_per_node", ".devices"});
  if (const ConfigValue* resource = config.find({".gres"}); resource != nullptr && !of_node)
    of_node = parse_number<std::int64_t>(resource->text.substr(resource->text.rfind(':') + 1));
  const bool has_nodes = config.has({".nnodes", ".num_nodes", ".nodes"});
  if (!said.gpus && of_node && (nodes || !has_nodes)) said.gpus = nodes.value_or(1) * *of_node;
}

void note_settings(ConfigReader& config, LaunchSettings& said) {
  note_not_priced(
      config,
      {".pipeline_model_parallel_layout", ".decoder_first_pipeline_num_layers",
       ".decoder_last_pipeline_num_layers", ".moe_expert_capacity_factor", ".overlap_param_gather",
       ".moe_shared_expert_overlap", ".cuda_graph_scope", ".rampup_batch_size", ".window_size",
       ".grad_reduce_in_bf16", ".use_precision_aware_optimizer",
       ".num_distributed_optimizer_instances=1", ".use_torch_fsdp2", ".cpu_offloading",
       ".optimizer_offload_fraction=1.0", ".distribute_saved_activations"},
      said);
  const std::string optimizer = config.word({".optimizer"}, "adam");
  if (optimizer.find("adam") == optimizer.npos)
    said.notes.push_back(fmt::format("optimizer: Adam's state is priced, not {}'s", optimizer));
}

LaunchSettings read_megatron(ConfigReader& config) {
  LaunchSettings said;
  const bool has_shape = config.has({".num_layers"}) && config.has({".hidden_size"});
  std::int64_t layers = 1;
  if (has_shape) {
    const nlohmann::json model = megatron_model(config);
    layers = model.at("layers").get<std::int64_t>();
    said.model = model_text(model);
  } else {
    said.sequence =
        std::to_string(config.integer({".seq_length", ".encoder_seq_length"}).value_or(0));
    if (said.sequence == "0") said.sequence.clear();
  }
  const std::int64_t tensor = config.integer({".tensor_model_parallel_size"}, 1);
  const std::int64_t stages = config.integer({".pipeline_model_parallel_size"}, 1);
  said.layout["tp"] = tensor, said.layout["pp"] = stages;
  said.layout["cp"] = config.integer({".context_parallel_size"}, 1);
  said.layout["ep"] = config.integer({".expert_model_parallel_size"}, 1);
  const std::int64_t of_expert = config.integer({".expert_tensor_parallel_size"}, tensor);
  if (tensor > 1 && said.layout["ep"] > 1) said.layout["etp"] = of_expert;
  const std::int64_t chunks = chunks_of(config, layers, stages);
  said.layout["virtual_stages"] = chunks;
  if (chunks > 1) said.layout["schedule"] = "interleaved";
  said.layout["micro_batch"] = config.integer({".micro_batch_size"}, 1);
  said.global_batch = config.integer({".global_batch_size"});
  said.layout["sequence_parallel"] = config.flag({".sequence_parallel"}) && tensor > 1;
  said.layout["framework"] = "megatron", said.layout["precision"] = precision_of_job(config);
  said.layout["zero"] = sharding_of(config);
  said.layout["overlap"] = config.flag({".overlap_grad_reduce"});
  said.layout["overlap_exchanges"] = config.flag({".tp_comm_overlap"}) && tensor > 1;
  said.layout["host_optimizer"] = config.flag({".optimizer_cpu_offload"});
  said.layout["cuda_graphs"] = has_graphs(config);
  read_dispatch(config, said);
  const std::string attention = config.word({".attention_backend"}, "flash");
  said.layout["fused_attention"] = attention != "unfused" && attention != "local" &&
                                   config.word({".transformer_impl"}) != "local";
  said.layout["embedding_is_layer"] =
      stages > 1 && config.flag({".account_for_embedding_in_pipeline_split"});
  read_megatron_recomputation(config, layers, said);
  read_devices(config, said);
  note_settings(config, said);
  return said;
}

/// Megatron-LM selects interleaving by the number of chunks alone.
bool megatron_runs(const Layout& layout) {
  return layout.flushes * layout.replicas == 1 &&
         (layout.pipeline == 1 || layout.schedule == "1f1b" || layout.schedule == "interleaved");
}

std::vector<ConfigChange> megatron_changes(const Layout& layout) {
  std::vector<ConfigChange> all;
  const auto add = [&](const char* key, std::int64_t value, const char* usual = "1") {
    all.push_back({key, std::to_string(value), usual});
  };
  const auto flag = [&](const char* key, bool value) {
    all.push_back({key, value ? "true" : "false", "false"});
  };
  add("tensor_model_parallel_size", layout.tensor, "");
  add("pipeline_model_parallel_size", layout.pipeline, "");
  add("context_parallel_size", layout.context);
  add("expert_model_parallel_size", layout.expert);
  all.push_back({"expert_tensor_parallel_size", std::to_string(layout.of_expert()),
                 std::to_string(layout.tensor)});
  add("num_virtual_stages_per_pipeline_rank", layout.virtual_stages);
  const bool counts_embedding = layout.embedding_is_layer && layout.pipeline > 1;
  flag("account_for_embedding_in_pipeline_split", counts_embedding);
  flag("account_for_loss_in_pipeline_split", counts_embedding);
  add("micro_batch_size", layout.micro_batch, "");
  add("global_batch_size", layout.global_batch, "");
  flag("sequence_parallel", layout.sequence_parallel);
  const auto word = [&](const char* key, bool is_given, const char* value) {
    all.push_back({key, is_given ? value : "", ""});
  };
  const bool is_full = layout.recompute == "full";
  word("num_layers_per_virtual_pipeline_stage", false, "");
  flag("recompute_activations", false);
  word("recompute_granularity", layout.recompute != "none", is_full ? "full" : "selective");
  word("recompute_modules", layout.recompute == "pointwise", "core_attn layernorm moe_act");
  word("recompute_method", is_full, "uniform");
  word("recompute_num_layers", is_full, "1");
  flag("bf16", layout.precision == "bf16" || layout.precision == "fp8");
  flag("fp16", layout.precision == "fp16");
  word("fp8_format", layout.precision == "fp8", "hybrid");
  if (layout.dispatcher == "deepep") word("moe_token_dispatcher_type", true, "flex");
  flag("overlap_moe_expert_parallel_comm", layout.overlaps_dispatch);
  flag("overlap_grad_reduce", layout.overlaps_gradients && layout.data > 1);
  flag("use_distributed_optimizer", layout.zero >= 1);
  flag("use_megatron_fsdp", layout.zero >= 2);
  word("data_parallel_sharding_strategy", layout.zero >= 2,
       layout.zero == 2 ? "optim_grads" : "optim_grads_params");
  return all;
}

}  // namespace

LaunchProgram megatron_program() {
  return {
      .name = "Megatron-LM",
      .recognizes =
          [](ConfigReader& config) {
            return config.has({".tensor_model_parallel_size", ".pipeline_model_parallel_size"}) ||
                   (config.has({".num_layers"}) && config.has({".hidden_size"}));
          },
      .read = read_megatron,
      .runs = megatron_runs,
      .changes = megatron_changes,
      .has_flags = true};
}

}  // namespace foretrace
