// nanotron's YAML, whose model is a config.json of Hugging Face.

#include <fmt/core.h>

#include "foretrace/error.h"
#include "launch/registered.h"
#include "workload/hugging_face.h"

namespace foretrace {
namespace {

/// The settings below model.model_config as an object.
nlohmann::json nanotron_shape(ConfigReader& config) {
  nlohmann::json shape;
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "intermediate_size", "vocab_size", "head_dim", "max_position_embeddings"}) {
    if (const auto value = config.integer({std::string("model.model_config.") + key}))
      shape[key] = *value;
  }
  shape["model_type"] = "llama";
  shape["tie_word_embeddings"] = config.flag({"model.model_config.tie_word_embeddings"});
  const auto experts = config.integer({"model.model_config.moe_config.num_experts"});
  if (!experts) return shape;
  shape["model_type"] = "qwen3_moe", shape["num_experts"] = *experts;
  shape["num_experts_per_tok"] = config.integer({"model.model_config.moe_config.top_k"}, 2);
  shape["moe_intermediate_size"] =
      config.integer({"model.model_config.moe_config.moe_intermediate_size"}, 1408);
  return shape;
}

LaunchSettings read_nanotron(ConfigReader& config) {
  LaunchSettings said;
  const std::int64_t tensor = config.integer({"parallelism.tp"}, 1);
  const std::int64_t stages = config.integer({"parallelism.pp"}, 1);
  const std::int64_t context = config.integer({"parallelism.context_parallel_size"}, 1);
  const std::int64_t data = config.integer({"parallelism.dp"}, 1);
  said.layout["tp"] = tensor, said.layout["pp"] = stages, said.layout["cp"] = context;
  said.layout["ep"] = config.integer({"parallelism.expert_parallel_size"}, 1);
  said.gpus = tensor * stages * context * data;
  said.layout["schedule"] =
      config.word({"parallelism.pp_engine"}, "afab") == "afab" && stages > 1 ? "gpipe" : "1f1b";
  said.layout["sequence_parallel"] =
      tensor > 1 && config.word({"parallelism.tp_mode"}, "ALL_REDUCE") == "REDUCE_SCATTER";
  said.layout["overlap_exchanges"] =
      tensor > 1 && config.flag({"parallelism.tp_linear_async_communication"});
  said.layout["recompute"] = config.flag({"parallelism.recompute_layer"}) ? "full" : "none";
  said.layout["framework"] = "nanotron", said.layout["overlap"] = false;
  said.layout["zero"] = config.integer({"optimizer.zero_stage"}).value_or(0);
  const std::string type = config.word({"model.dtype"}, "bfloat16");
  said.layout["precision"] = type == "bfloat16" ? "bf16" : type == "float16" ? "fp16" : "fp32";
  said.layout["micro_batch"] = config.integer({"tokens.micro_batch_size"}, 1);
  said.accumulation = config.integer({"tokens.batch_accumulation_per_replica"}, 1);
  const std::initializer_list<std::string_view> length = {"tokens.sequence_length"};
  if (config.has(length)) said.sequence = std::to_string(config.integer(length, 1));
  const nlohmann::json shape = nanotron_shape(config);
  if (shape.contains("hidden_size")) {
    nlohmann::json model = hugging_face_settings(shape);
    model["sequence"] = config.stated(length, "tokens of a sample");
    said.model = model_text(model), said.sequence.clear();
  }
  note_not_priced(config, {".sliding_window_size"}, said);
  if (!config.flag({"optimizer.accumulate_grad_in_fp32"}, true))
    said.notes.emplace_back("optimizer.accumulate_grad_in_fp32: sums in float32 are priced");
  return said;
}

bool nanotron_runs(const Layout& layout) {
  return layout.virtual_stages == 1 && layout.zero <= 1 && layout.flushes * layout.replicas == 1 &&
         (layout.pipeline == 1 || layout.schedule == "1f1b" || layout.schedule == "gpipe") &&
         (layout.recompute == "none" || layout.recompute == "full");
}

std::vector<ConfigChange> nanotron_changes(const Layout& layout) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  return {{"parallelism.dp", number(layout.data)},
          {"parallelism.pp", number(layout.pipeline)},
          {"parallelism.tp", number(layout.tensor)},
          {"parallelism.context_parallel_size", number(layout.context), "1"},
          {"parallelism.expert_parallel_size", number(layout.expert), "1"},
          {"parallelism.pp_engine", layout.schedule == "gpipe" ? "afab" : "1f1b",
           layout.pipeline == 1 ? "1f1b" : "afab", true},
          {"parallelism.tp_mode", layout.sequence_parallel ? "REDUCE_SCATTER" : "ALL_REDUCE",
           "ALL_REDUCE", true},
          {"parallelism.recompute_layer", flag(layout.recompute == "full"), "false"},
          {"tokens.micro_batch_size", number(layout.micro_batch)},
          {"tokens.batch_accumulation_per_replica", number(layout.micro_batches())},
          {"optimizer.zero_stage", number(layout.zero), "0"}};
}

}  // namespace

LaunchProgram nanotron_program() {
  return {.name = "nanotron",
          .recognizes =
              [](ConfigReader& config) {
                return config.has({"parallelism.dp", "tokens.micro_batch_size"});
              },
          .read = read_nanotron,
          .runs = nanotron_runs,
          .changes = nanotron_changes};
}

}  // namespace foretrace
