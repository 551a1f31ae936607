#include "serve/model.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "workload/workload.h"

namespace foretrace::serve {
namespace {

struct ModelRow {
  std::string_view preset;
  std::int64_t context;
  double state_layers, state_bytes;
  bool narrow_experts_only;
};
constexpr ModelRow kModels[] = {
#define MODEL(...) {__VA_ARGS__},
#include "serve/models.def"
#undef MODEL
};

/// Bytes of a parameter with its scales: one of 4 bytes for 128 x 128, or of 1 byte for 16, or of
/// 1 byte for 32; 4 bits with a scale and a zero point for 128.
constexpr double kFp8Block = 1 + 4. / 16384, kNvfp4 = .5 + 1. / 16, kMxfp4 = .5 + 1. / 32;
constexpr double kInt4 = .5 + 2.5 / 128;
/// Bytes that pointwise kernels of a layer move for each element of the residual stream: two norms
/// with additions, rotary embedding, activation and conversions. Counted in kernels; recalled.
constexpr double kPointwise = 24;

double split(double value, double ranks) { return value / std::max(1., ranks); }

/// Ranks beyond the number of heads of keys and values hold copies.
double cache_ranks(const Model& model, std::int64_t tensor) {
  return model.kv_rank > 0 ? 1 : std::min(static_cast<double>(tensor), model.kv_heads);
}

double cache_elements(const Model& model) {
  return model.kv_rank > 0 ? model.kv_rank + model.rotary
                           : model.kv_heads * (model.head + model.value);
}

double growing_layers(const Model& model) {
  return model.layers - model.window_layers - model.state_layers;
}

class Operations {
 public:
  Operations(const Model& model, const Precision& precision, const Placement& placement,
             const StepWork& work)
      : model_(model),
        precision_(precision),
        work_(work),
        tensor_(static_cast<double>(placement.tensor)),
        data_(static_cast<double>(placement.data)),
        expert_(static_cast<double>(placement.expert)),
        device_(placement.tensor) {}

  StepOperations made() {
    add_projections();
    add_attention();
    const double dense = model_.experts > 0 ? model_.dense_layers : model_.layers;
    if (dense > 0) add_feed_forward(model_.ffn, dense);
    if (model_.experts > 0) add_experts(model_.layers - dense);
    made_.operations.push_back({.kind = OperationKind::stream,
                                .arithmetic = Arithmetic::half,
                                .count = model_.layers,
                                .weights = 2 * 2 * model_.hidden,
                                .moved = kPointwise * work_.rows * model_.hidden});
    made_.operations.push_back(
        {.kind = OperationKind::product,
         .arithmetic = Arithmetic::half,
         .flops = 2 * work_.sampled * model_.hidden * model_.vocabulary / tensor_,
         .weights = 2 * model_.hidden * (model_.vocabulary / tensor_ + 1)});
    made_.exchanged = 2 * work_.rows * model_.hidden;
    if (tensor_ > 1) made_.exchanges = 2 * model_.layers + 1;
    return std::move(made_);
  }

 private:
  void add_product(double rows, double columns, double inner, double count) {
    made_.operations.push_back({.kind = OperationKind::product,
                                .arithmetic = precision_.dense,
                                .count = count,
                                .flops = 2 * rows * columns * inner,
                                .weights = columns * inner * precision_.dense_bytes,
                                .moved = 2 * rows * (columns + inner)});
  }

  void add_projections() {
    const double h = model_.hidden, rows = work_.rows, layers = model_.layers;
    const double heads = model_.heads / tensor_;
    if (model_.kv_rank > 0) {
      const double nope = model_.head - model_.rotary;
      const double query = model_.query_rank > 0 ? model_.query_rank : 0;
      add_product(rows, query + model_.kv_rank + model_.rotary, h, layers);
      add_product(rows, heads * model_.head, query > 0 ? query : h, layers);
      add_product(rows, heads * (nope + model_.value), model_.kv_rank, layers);
    } else {
      const double kv = model_.kv_heads / cache_ranks(model_, device_);
      add_product(rows, heads * model_.head + kv * (model_.head + model_.value), h, layers);
    }
    add_product(rows, h, heads * model_.value, layers);
  }

  /// Decoding attends with latent vectors where there are any; prompts with whole heads.
  void add_attention() {
    const double heads = model_.heads / tensor_;
    const double token =
        cache_elements(model_) / cache_ranks(model_, device_) * precision_.cache_bytes;
    const double latent = model_.kv_rank > 0 ? 2 * (2 * model_.kv_rank + model_.rotary)
                                             : 2 * (model_.head + model_.value);
    const auto add = [&](double count, double context, double pairs, double past) {
      if (count <= 0) return;
      if (work_.sequences > 0)
        made_.operations.push_back({.kind = OperationKind::decode,
                                    .arithmetic = Arithmetic::half,
                                    .count = count,
                                    .flops = heads * latent * context,
                                    .cache = context * token});
      if (work_.prompt_tokens > 0)
        made_.operations.push_back({.kind = OperationKind::attention,
                                    .arithmetic = Arithmetic::half,
                                    .count = count,
                                    .flops = 2 * heads * (model_.head + model_.value) * pairs,
                                    .cache = past * token});
    };
    add(growing_layers(model_), work_.context, work_.prompt_pairs, work_.prompt_context);
    add(model_.window_layers, std::min(work_.context, work_.sequences * model_.window),
        std::min(work_.prompt_pairs, work_.prompt_tokens * model_.window), 0);
    if (model_.state_layers > 0)
      made_.operations.push_back(
          {.kind = OperationKind::decode,
           .arithmetic = Arithmetic::half,
           .count = model_.state_layers,
           .cache = 2 * work_.sequences * model_.state_bytes / model_.state_layers / tensor_});
  }

  void add_feed_forward(double width, double layers) {
    add_product(work_.rows, (model_.matrices - 1) * width / tensor_, model_.hidden, layers);
    add_product(work_.rows, model_.hidden, width / tensor_, layers);
  }

  void add_experts(double layers) {
    const double tokens = work_.rows * data_, devices = tensor_ * data_;
    const double width = split(model_.expert_ffn, devices / expert_);
    const double weights = model_.matrices * model_.hidden * width;
    const double held = model_.experts / expert_;
    const double reached =
        held / model_.experts * distinct_experts(model_.experts, model_.active, tokens);
    const double routed = tokens * model_.active / expert_;
    made_.operations.push_back({.kind = OperationKind::experts,
                                .arithmetic = precision_.experts,
                                .count = layers,
                                .flops = 2 * routed * weights,
                                .weights = reached * weights * precision_.expert_bytes,
                                .moved = 4 * routed * (model_.hidden + width)});
    add_product(work_.rows, model_.experts, model_.hidden, layers);
    if (model_.shared_ffn > 0) add_feed_forward(model_.shared_ffn, layers);
    if (data_ > 1)
      made_.dispatched = layers * 3 * work_.rows * std::min(model_.active, expert_) *
                         model_.hidden * (1 - 1 / devices);
  }

  const Model& model_;
  const Precision& precision_;
  const StepWork& work_;
  double tensor_, data_, expert_;
  std::int64_t device_;
  StepOperations made_;
};

}  // namespace

double Model::attention_parameters() const {
  if (kv_rank == 0)
    return hidden * (heads * head + kv_heads * (head + value)) + heads * value * hidden;
  const double query =
      query_rank > 0 ? hidden * query_rank + query_rank * heads * head : hidden * heads * head;
  return query + hidden * (kv_rank + rotary) + kv_rank * heads * (head - rotary + value) +
         heads * value * hidden;
}

double Model::expert_parameters() const { return matrices * hidden * expert_ffn; }

double Model::parameters() const {
  const double dense = experts > 0 ? dense_layers : layers;
  return layers * (attention_parameters() + 2 * hidden) + dense * matrices * hidden * ffn +
         (layers - dense) *
             (experts * (expert_parameters() + hidden) + matrices * hidden * shared_ffn) +
         (is_tied ? 1 : 2) * vocabulary * hidden + hidden;
}

Model find_model(const std::string& name) {
  const auto workload = find_workload(name);
  const nlohmann::json json = write_json(*workload);
  if (!json.contains("kv_heads"))
    throw Error(fmt::format("model: must be a transformer, got {}", name));
  const auto number = [&](const char* key) { return json.at(key).get<double>(); };
  Model model{.name = name,
              .layers = number("layers"),
              .hidden = number("hidden"),
              .heads = number("heads"),
              .vocabulary = number("vocabulary"),
              .experts = number("experts"),
              .active = number("active_experts"),
              .shared_ffn = number("shared_ffn"),
              .dense_layers = std::min(number("dense_layers"), number("layers")),
              .query_rank = number("query_rank"),
              .kv_rank = number("kv_rank"),
              .rotary = number("rotary_size"),
              .window = number("window"),
              .context = json.at("sequence").get<std::int64_t>(),
              .is_tied = json.at("tied").get<bool>()};
  const auto or_else = [&](const char* key, double value) {
    return number(key) > 0 ? number(key) : value;
  };
  model.kv_heads = or_else("kv_heads", model.heads);
  model.head = or_else("head_size", model.hidden / model.heads);
  model.value = or_else("value_size", model.head);
  model.ffn = or_else("ffn", 4 * model.hidden);
  model.expert_ffn = or_else("expert_ffn", model.ffn);
  model.matrices = json.at("gated").get<bool>() ? 3 : 2;
  if (model.window > 0) model.window_layers = std::floor(model.layers / 2);
  const std::string preset = name.substr(0, name.find(':'));
  const auto recorded = presets_recorded_as(preset);
  for (const ModelRow& row : kModels) {
    if (row.preset != preset && (recorded.empty() || row.preset != recorded.front())) continue;
    model.context = row.context, model.narrow_experts_only = row.narrow_experts_only;
    model.state_layers = row.state_layers, model.state_bytes = row.state_bytes;
  }
  return model;
}

namespace {

double cache_element_bytes(const std::string& weights, const std::string& cache,
                           const DeviceModel& device) {
  const bool has_fp8 = peak_of(device, Arithmetic::fp8).flops_per_second > 0;
  const bool has_fp4 = peak_of(device, Arithmetic::nvfp4).flops_per_second > 0;
  if (cache == "auto") return weights.starts_with("fp") && has_fp8 ? 1 : 2;
  if (cache == "bf16") return 2;
  if (cache != "fp8" && cache != "fp4")
    throw Error(fmt::format("cache: must be one of auto, bf16, fp8, fp4, got \"{}\"", cache));
  if (cache == "fp8" ? !has_fp8 : !has_fp4)
    throw Error(fmt::format("cache: {} has no {}; take bf16", device.name,
                            to_text(cache == "fp8" ? Arithmetic::fp8 : Arithmetic::nvfp4)));
  return cache == "fp8" ? 1 : kNvfp4;
}

}  // namespace

Precision precision_of(const Model& model, const std::string& weights, const std::string& cache,
                       const DeviceModel& device) {
  Precision precision{.name = weights};
  if (weights == "fp8")
    precision.dense = Arithmetic::fp8, precision.dense_bytes = 1;
  else if (weights == "fp8_block")
    precision.dense = Arithmetic::fp8_blocks, precision.dense_bytes = kFp8Block;
  else if (weights == "fp4")
    precision.dense = Arithmetic::nvfp4, precision.dense_bytes = kNvfp4;
  else if (weights == "int4")
    precision.dense = Arithmetic::int4_weights, precision.dense_bytes = kInt4;
  else if (weights != "bf16")
    throw Error(fmt::format("weights: must be one of bf16, fp8, fp8_block, fp4, int4, got \"{}\"",
                            weights));
  precision.experts = precision.dense, precision.expert_bytes = precision.dense_bytes;
  if (model.narrow_experts_only) {
    precision.dense = Arithmetic::half, precision.dense_bytes = 2;
    if (weights == "fp4") precision.expert_bytes = kMxfp4;
  }
  // A device without arithmetic in 4 bits widens such weights as it reads them.
  const auto widened = [&](Arithmetic& arithmetic) {
    if (arithmetic == Arithmetic::nvfp4 && peak_of(device, arithmetic).flops_per_second == 0)
      arithmetic = Arithmetic::int4_weights;
    if (peak_of(device, arithmetic).flops_per_second == 0)
      throw Error(fmt::format("weights: {} has no arithmetic in {}; take bf16", device.name,
                              to_text(arithmetic)));
  };
  widened(precision.dense), widened(precision.experts);
  precision.cache_bytes = cache_element_bytes(weights, cache, device);
  return precision;
}

void check_placement(const Model& model, const Placement& placement) {
  const auto divides = [&](const char* what, double size, const char* ranks, std::int64_t count) {
    if (std::fmod(size, static_cast<double>(count)) != 0)
      throw Error(
          fmt::format("{}: must divide the model's {} {}, got {}", ranks, size, what, count));
  };
  divides("heads", model.heads, "tensor_parallel", placement.tensor);
  if (model.experts == 0 && (placement.expert > 1 || placement.data > 1))
    throw Error(
        "expert_parallel and data_parallel: must be 1 for a model without experts; more copies of "
        "it are replicas");
  if (model.experts > 0) divides("experts", model.experts, "expert_parallel", placement.expert);
  if ((placement.tensor * placement.data) % placement.expert != 0)
    throw Error(fmt::format("expert_parallel: must divide the {} devices of a copy, got {}",
                            placement.tensor * placement.data, placement.expert));
}

double weight_bytes(const Model& model, const Precision& precision, const Placement& placement) {
  const auto tensor = static_cast<double>(placement.tensor);
  const double dense = model.experts > 0 ? model.dense_layers : model.layers;
  const double moe = model.layers - dense;
  const double linear = (model.layers * model.attention_parameters() +
                         dense * model.matrices * model.hidden * model.ffn +
                         moe * model.matrices * model.hidden * model.shared_ffn) /
                        tensor;
  const double half = (model.is_tied ? 1 : 2) * model.vocabulary * model.hidden / tensor +
                      (2 * model.layers + 1) * model.hidden + moe * model.experts * model.hidden;
  return linear * precision.dense_bytes + 2 * half +
         moe * model.experts * model.expert_parameters() * precision.expert_bytes /
             placement.devices();
}

double cache_bytes_per_token(const Model& model, const Precision& precision, std::int64_t tensor) {
  return growing_layers(model) * cache_elements(model) / cache_ranks(model, tensor) *
         precision.cache_bytes;
}

double cache_bytes_per_sequence(const Model& model, const Precision& precision,
                                std::int64_t tensor) {
  return model.window_layers * model.window * cache_elements(model) / cache_ranks(model, tensor) *
             precision.cache_bytes +
         model.state_bytes / static_cast<double>(tensor);
}

StepOperations operations_of(const Model& model, const Precision& precision,
                             const Placement& placement, const StepWork& work) {
  return Operations(model, precision, placement, work).made();
}

double distinct_experts(double experts, double active, double tokens) {
  return experts * (1 - std::pow(1 - active / experts, tokens));
}

double tokens_per_step(double acceptance, std::int64_t drafts) {
  double sum = 0, power = 1;
  for (std::int64_t i = 0; i <= drafts; ++i, power *= acceptance) sum += power;
  return sum;
}

}  // namespace foretrace::serve
