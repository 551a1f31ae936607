// Keys and defaults are of transformers' configuration classes, by model_type.

#include "workload/hugging_face.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 14> kTypes = {
    "deepseek_v2", "deepseek_v3", "glm4_moe", "gpt2",  "gpt_oss", "kimi_k2",   "llama",
    "minimax_m2",  "mistral",     "mixtral",  "qwen2", "qwen3",   "qwen3_moe", "qwen3_next"};

class Shape {
 public:
  explicit Shape(const Json& config) : config_(config) {}

  std::int64_t number(const char* key) const {
    const auto value = optional(key);
    if (!value) throw Error(fmt::format("{}: must be given", key));
    return *value;
  }
  std::int64_t number(const char* key, std::int64_t usual) const {
    return optional(key).value_or(usual);
  }
  bool flag(const char* key, bool usual) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return usual;
    if (!found->is_boolean())
      throw Error(fmt::format("{}: must be true or false, got {}", key, json_line(*found)));
    return found->get<bool>();
  }
  const Json& json() const { return config_; }

 private:
  std::optional<std::int64_t> optional(const char* key) const {
    const auto found = config_.find(key);
    if (found == config_.end() || found->is_null()) return std::nullopt;
    return within(key, [&] { return whole_number(*found); });
  }

  const Json& config_;
};

void add_latent_attention(const Shape& shape, Json& model) {
  const std::int64_t rotary = shape.number("qk_rope_head_dim");
  model["query_rank"] = shape.number("q_lora_rank", 0);
  model["kv_rank"] = shape.number("kv_lora_rank");
  model["head_size"] = shape.number("qk_nope_head_dim") + rotary, model["rotary_size"] = rotary;
  model["value_size"] = shape.number("v_head_dim");
  model.erase("kv_heads");
}

/// Layers that are listed as dense must be the first ones.
std::int64_t dense_layers(const Shape& shape) {
  if (shape.number("decoder_sparse_step", 1) != 1 || shape.number("moe_layer_freq", 1) != 1)
    throw Error("decoder_sparse_step and moe_layer_freq: must be 1; other layers are not priced");
  const Json listed = shape.json().value("mlp_only_layers", Json::array());
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] != i)
      throw Error("mlp_only_layers: must be the first layers, got " + json_line(listed));
  }
  return std::ssize(listed) + shape.number("first_k_dense_replace", 0);
}

void add_experts(const Shape& shape, std::string_view type, Json& model) {
  const std::int64_t experts = shape.number(
      "num_experts", shape.number("num_local_experts", shape.number("n_routed_experts", 0)));
  if (experts == 0) return;
  model["experts"] = experts;
  model["active_experts"] =
      shape.number("num_experts_per_tok", shape.number("experts_per_token", 2));
  const std::int64_t width = shape.number("moe_intermediate_size", model.at("ffn"));
  model["expert_ffn"] = width, model["dense_layers"] = dense_layers(shape);
  model["shared_ffn"] =
      shape.number("shared_expert_intermediate_size", shape.number("n_shared_experts", 0) * width);
  model["score_bias"] = type == "deepseek_v3" || type == "kimi_k2" || type == "glm4_moe";
}

void add_linear_attention(const Shape& shape, Json& model) {
  model["full_every"] = shape.number("full_attention_interval", 4);
  model["linear_heads"] = shape.number("linear_num_key_heads");
  model["linear_value_heads"] = shape.number("linear_num_value_heads");
  model["linear_head_size"] = shape.number("linear_key_head_dim");
  if (shape.number("linear_value_head_dim") != shape.number("linear_key_head_dim"))
    throw Error("linear_value_head_dim: must be linear_key_head_dim; others are not priced");
  model["linear_kernel"] = shape.number("linear_conv_kernel_dim", 4);
  model["query_gate"] = model["shared_gate"] = true;
}

void add_kind(const Shape& shape, std::string_view type, Json& model) {
  if (type == "qwen2") model["qkv_biases"] = true;
  if (type.starts_with("qwen3")) model["qk_norm"] = true;
  if (type == "glm4_moe") model["qk_norm"] = shape.flag("use_qk_norm", false);
  if (type != "qwen2") model["qkv_biases"] = shape.flag("attention_bias", type == "gpt_oss");
  if (type.starts_with("deepseek") || type == "kimi_k2") add_latent_attention(shape, model);
  if (type == "qwen3_next") add_linear_attention(shape, model);
  if (type == "gpt_oss") model["output_bias"] = model["expert_biases"] = model["sinks"] = true;
  if (type == "gpt_oss") model["window"] = shape.number("sliding_window", 128);
}

Json gpt2_settings(const Shape& shape) {
  const std::int64_t width = shape.number("n_embd");
  return {{"layers", shape.number("n_layer")},        {"hidden", width},
          {"heads", shape.number("n_head")},          {"ffn", shape.number("n_inner", 4 * width)},
          {"vocabulary", shape.number("vocab_size")}, {"sequence", shape.number("n_positions")},
          {"positions", shape.number("n_positions")}};
}

}  // namespace

bool is_hugging_face(const Json& config) {
  if (!config.is_object()) return false;
  const Json& inner = config.contains("text_config") ? config["text_config"] : config;
  return inner.contains("model_type") || inner.contains("num_hidden_layers");
}

Json hugging_face_settings(const Json& config) {
  if (config.contains("text_config")) return hugging_face_settings(config["text_config"]);
  const auto stated = config.find("model_type");
  const std::string type =
      stated != config.end() && stated->is_string() ? stated->get<std::string>() : "";
  if (std::ranges::find(kTypes, type) == kTypes.end())
    throw Error(
        fmt::format("model_type: must be one of {}, got \"{}\"{}", joined(kTypes), type,
                    config.contains("auto_map") ? "; its own code (auto_map) is not run" : ""));
  const Shape shape(config);
  if (type == "gpt2") return gpt2_settings(shape);
  constexpr std::int64_t kUsualSample = 4096;
  const std::int64_t heads = shape.number("num_attention_heads");
  const std::int64_t hidden = shape.number("hidden_size");
  Json model = {{"layers", shape.number("num_hidden_layers")},
                {"hidden", hidden},
                {"heads", heads},
                {"kv_heads", shape.number("num_key_value_heads", heads)},
                {"head_size", shape.number("head_dim", hidden / std::max<std::int64_t>(1, heads))},
                {"ffn", shape.number("intermediate_size")},
                {"gated", true},
                {"vocabulary", shape.number("vocab_size")},
                {"tied", shape.flag("tie_word_embeddings", false)},
                {"biases", false},
                {"dropout", false}};
  model["sequence"] = std::min(kUsualSample, shape.number("max_position_embeddings", kUsualSample));
  add_kind(shape, type, model);
  add_experts(shape, type, model);
  return model;
}

}  // namespace foretrace
