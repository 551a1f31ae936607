// Transformers. A device has s tokens of b sequences, width h, t tensor parallel ranks, a heads of
// size d, k heads for keys and values, and feed-forward width f.
//
//     parameters of a block   h (a + 2 k) d + a d h + (2 or 3) h f, biases and norms
//     with linear attention   h (2 k + 2 v) + v h: keys of width k, values of width v, and a gate
//     kept for the backward   s b (10 h + (2 (a + 2 k) d + 2 a d + 4 f (6 f if gated)) / t) bytes,
//                             plus 5 s^2 b a / t for scores that are not fused (Korthikanti et al.,
//                             arXiv 2205.05198: s b h (34 + 5 a s / h) at t = 1)
//
// Linear attention is the gated delta rule in chunks (arXiv 2412.06464). Layers that predict
// further tokens (arXiv 2412.19437) are part of the head, as they run behind it on the last stage.
//
// Not modelled: rotary embedding as separate work, auxiliary losses, unequal loads of experts.

#include <cmath>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "workload/eager.h"
#include "workload/registered.h"

namespace foretrace {
namespace {

/// Vocabularies are padded to a multiple of this many rows per tensor parallel rank, as in
/// Megatron.
constexpr double kVocabularyStep = 128;
/// Bytes that pointwise kernels move per element of 2 bytes: a norm reads and writes; an addition
/// with dropout reads two, writes one and a mask; its backward pass reads one more.
constexpr double kNormBytes = 4, kAddBytes = 7, kNormBackBytes = 8, kAddBackBytes = 7;
/// An activation with bias reads and writes; a gated one reads two.
constexpr double kActBytes = 4, kGatedBytes = 6, kActBackBytes = 6, kGatedBackBytes = 10;
constexpr double kCopyBytes = 4;  ///< Bias and transposition of queries, keys and values.
/// Unfused scores: the masked softmax reads and writes; dropout reads, writes and creates a mask.
constexpr double kScoreBytes = 9, kScoreBackBytes = 11;
/// Loss on logits: cast to 4 bytes, maximum, exponential and sum; the backward pass scales and
/// casts.
constexpr double kLossBytes = 18, kLossBackBytes = 10;
/// Tokens that the gated delta rule takes at once, and its kernels, as its public code has them;
/// recalled.
constexpr double kChunk = 64;
constexpr std::int64_t kLinearKernels = 10;
/// Kernels of a block as Megatron and PyTorch launch them, counted in their sources; recalled.
constexpr std::int64_t kBlockKernels = 18, kUnfusedKernels = 6, kExpertKernels = 12;

/// Adds the work, the sizes and the parameters of a layer to another one that runs with it.
void add_layer(LayerRow& row, const LayerRow& added) {
  row.gemms.insert(row.gemms.end(), added.gemms.begin(), added.gemms.end());
  row.attention_operations += added.attention_operations;
  row.moved_bytes += added.moved_bytes, row.moved_back_bytes += added.moved_back_bytes;
  row.kernels += added.kernels, row.operations += added.operations;
  row.parameters += added.parameters, row.expert_parameters += added.expert_parameters;
  row.all_parameters += added.all_parameters;
  row.kept += added.kept, row.kept_selective += added.kept_selective;
  row.kept_pointwise += added.kept_pointwise, row.kept_full += added.kept_full;
  row.exchanges += added.exchanges, row.exchanged = std::max(row.exchanged, added.exchanged);
  row.keys_and_values += added.keys_and_values, row.routed += added.routed;
  row.experts = std::max(row.experts, added.experts);
  row.active_experts = std::max(row.active_experts, added.active_experts);
}

class Transformer final : public Workload {
 public:
  void describe(Fields& fields) override {
    fields.integer("layers", layers_, "Blocks", 1);
    fields.integer("hidden", hidden_, "Width of the residual stream", 1);
    fields.integer("heads", heads_, "Attention heads", 1);
    fields.integer("kv_heads", kv_heads_, "Heads of keys and values; 0: as many as heads", 0);
    fields.integer("head_size", head_size_, "Width of a head; 0: hidden / heads", 0);
    fields.integer("ffn", ffn_, "Width of the feed-forward layer; 0: 4 hidden", 0);
    fields.flag("gated", gated_, "The feed-forward layer has a gate (SwiGLU): three matrices");
    fields.integer("vocabulary", vocabulary_, "Number of distinct tokens", 1);
    fields.integer("sequence", sequence_, "Tokens of a sample", 1);
    fields.integer("positions", positions_, "Rows of a learned table of positions", 0);
    fields.flag("tied", tied_, "Embedding and head share their table");
    fields.flag("biases", biases_, "Linear layers have biases, norms have shifts");
    fields.flag("dropout", dropout_, "Dropout masks are created and kept");
    fields.flag("head_bias", head_bias_, "The head has a bias");
    fields.flag("bert", bert_, "Segments, pooler, masked-language and next-sentence heads");
    fields.integer("experts", experts_, "Experts of a block; 0: dense", 0);
    fields.integer("active_experts", active_, "Experts that a token is sent to", 0);
    fields.integer("expert_ffn", expert_ffn_, "Width of an expert; 0: ffn", 0);
    fields.integer("shared_ffn", shared_ffn_,
                   "Width of the shared experts, which process every token", 0);
    fields.integer("dense_layers", dense_layers_, "Number of first blocks without experts", 0);
    fields.integer("query_rank", query_rank_, "Latent attention: rank of queries; 0: none", 0);
    fields.integer("kv_rank", kv_rank_, "Latent attention: rank of keys and values; 0: none", 0);
    fields.integer("rotary_size", rotary_, "Latent attention: rotary part of a head", 0);
    fields.integer("value_size", value_size_, "Width of a head's values; 0: head_size", 0);
    fields.flag("qk_norm", qk_norm_, "Queries and keys are normalized by head");
    fields.flag("qkv_biases", qkv_biases_,
                "Queries, keys and values have biases, whatever biases says");
    fields.flag("output_bias", output_bias_, "The projection behind attention has a bias");
    fields.flag("sinks", sinks_, "Each head has a learned score that takes no value");
    fields.flag("query_gate", query_gate_,
                "A gate as wide as the queries scales attention's output");
    fields.flag("expert_biases", expert_biases_, "Experts and their router have biases");
    fields.flag("score_bias", score_bias_, "The choice of experts has a bias that balances them");
    fields.flag("shared_gate", shared_gate_, "A gate scales the shared experts' output");
    fields.integer("mtp_layers", mtp_layers_, "Further blocks that predict further tokens", 0);
    fields.integer("full_every", full_every_,
                   "Every so many blocks attend; the others have linear attention. 0: all attend",
                   0);
    fields.integer("linear_heads", linear_heads_, "Linear attention: heads of queries and keys", 0);
    fields.integer("linear_value_heads", linear_value_heads_, "Linear attention: heads of values",
                   0);
    fields.integer("linear_head_size", linear_head_size_, "Linear attention: width of a head", 0);
    fields.integer("linear_kernel", linear_kernel_,
                   "Linear attention: tokens that its short convolution covers", 0);
    fields.integer("window", window_, "Tokens that every second block attends back to; 0: all", 0);
  }

  void check() const override {
    if (head_size_ == 0 && hidden_ % heads_ != 0)
      throw Error(fmt::format("heads: must divide hidden, {}, got {}", hidden_, heads_));
    if (experts_ > 0 && (active_ < 1 || active_ > experts_))
      throw Error(
          fmt::format("active_experts: must be from 1 to experts, {}, got {}", experts_, active_));
    if (kv_heads_ > 0 && heads_ % kv_heads_ != 0)
      throw Error(fmt::format("kv_heads: must divide heads, {}, got {}", heads_, kv_heads_));
    if (full_every_ > 1 && std::min({linear_heads_, linear_value_heads_, linear_head_size_}) < 1)
      throw Error("full_every: needs linear_heads, linear_value_heads and linear_head_size");
    constexpr std::int64_t kMaxLayers = 10'000;  // The table has a row for each change of kind.
    if (full_every_ > 1 && layers_ > kMaxLayers)
      throw Error(
          fmt::format("layers: must be at most {} with full_every, got {}", kMaxLayers, layers_));
  }

  std::int64_t layer_count() const override { return layers_; }
  std::int64_t tokens() const override { return sequence_; }
  std::vector<double> traits() const override {
    return {std::log2(hidden_), std::log2(static_cast<double>(heads_)),
            std::log2(static_cast<double>(layers_)), std::log2(1. + static_cast<double>(experts_))};
  }

  LayerTable layers(const LayerSlice& slice) const override {
    check_slice(slice);
    LayerTable table{embedding(slice)};
    const std::int64_t dense = experts_ > 0 ? std::min(dense_layers_, layers_) : layers_;
    for (std::int64_t first = 0; first < layers_;) {
      const Kind kind = kind_of(first, dense);
      // Blocks up to the next with another attention, or the first with experts.
      std::int64_t next = layers_;
      if (full_every_ > 1)
        next = first + (kind.is_linear ? full_every_ - 1 - first % full_every_ : 1);
      if (!kind.has_experts) next = std::min(next, dense);
      table.push_back(block(slice, kind));
      next = std::min(next, layers_);
      table.back().count = next - first, first = next;
    }
    table.push_back(head(slice));
    return table;
  }

 private:
  struct Kind {
    bool has_experts = false, is_linear = false;
  };

  Kind kind_of(std::int64_t layer, std::int64_t dense) const {
    return {.has_experts = layer >= dense,
            .is_linear = full_every_ > 1 && (layer + 1) % full_every_ != 0};
  }

  void check_slice(const LayerSlice& slice) const {
    const auto divides = [](std::string_view name, std::int64_t size, std::string_view ranks,
                            std::int64_t count) {
      if (size % count != 0)
        throw Error(fmt::format("{} must divide by {}: {} by {}", name, ranks, size, count));
    };
    divides("heads", heads_, "tensor parallel ranks", slice.tensor);
    if (full_every_ > 1)
      divides("linear_heads", linear_heads_, "tensor parallel ranks", slice.tensor);
    divides("sequence", sequence_, "context parallel ranks", slice.context);
    if (experts_ > 0) {
      divides("experts", experts_, "expert parallel ranks", slice.expert);
      divides("expert_ffn", expert_ffn_ > 0 ? expert_ffn_ : ffn_, "ranks that share an expert",
              slice.expert_tensor);
    }
    if (experts_ == 0 && slice.expert > 1)
      throw Error(fmt::format("a model without experts must have 1 expert parallel rank, got {}",
                              slice.expert));
  }

  double head_size() const {
    return static_cast<double>(head_size_ > 0 ? head_size_ : hidden_ / heads_);
  }
  double value_size() const {
    return value_size_ > 0 ? static_cast<double>(value_size_) : head_size();
  }
  double kv_heads() const { return static_cast<double>(kv_heads_ > 0 ? kv_heads_ : heads_); }
  double ffn() const { return static_cast<double>(ffn_ > 0 ? ffn_ : 4 * hidden_); }
  double matrices() const { return gated_ ? 3 : 2; }
  double norm() const { return static_cast<double>(hidden_) * (biases_ ? 2 : 1); }
  static double padded(double vocabulary, const LayerSlice& slice) {
    const double step = kVocabularyStep * static_cast<double>(slice.tensor);
    return std::ceil(vocabulary / step) * step;
  }
  static double unsplit_share(const LayerSlice& slice) {
    return slice.sequence_parallel ? 1. / static_cast<double>(slice.tensor) : 1.;
  }
  double device_tokens(const LayerSlice& slice) const {
    return static_cast<double>(slice.micro_batch * sequence_ / slice.context);
  }
  static Bytes bytes(double count) { return {std::llround(count)}; }

  LayerRow embedding(const LayerSlice& slice) const {
    const auto h = static_cast<double>(hidden_), n = device_tokens(slice);
    LayerRow row{.name = "embedding"};
    const double places = static_cast<double>(positions_ + (bert_ ? 2 : 0));
    row.all_parameters = (static_cast<double>(vocabulary_) + places) * h + (bert_ ? norm() : 0);
    row.parameters =
        padded(static_cast<double>(vocabulary_), slice) * h / static_cast<double>(slice.tensor) +
        places * h;
    row.moved_bytes = n * h * (kNormBytes + kAddBytes), row.moved_back_bytes = n * h * kAddBytes;
    row.kernels = 6;
    row.kept = row.kept_selective = row.kept_pointwise = row.kept_full =
        bytes(dropout_ ? n * h * unsplit_share(slice) : 0);
    row.output = bytes(n * h * static_cast<double>(slice.element_bytes));
    if (slice.tensor > 1) row.exchanges = 1, row.exchanged = row.output;
    return row;
  }

  LayerRow head(const LayerSlice& slice) const {
    const auto h = static_cast<double>(hidden_), t = static_cast<double>(slice.tensor);
    const double n = device_tokens(slice), v = padded(static_cast<double>(vocabulary_), slice) / t;
    LayerRow row{.name = "head"};
    row.gemms.push_back({n, v, h});
    if (bert_) row.gemms.push_back({n, h, h});
    row.operations = 2 * n * static_cast<double>(slice.context * vocabulary_) * h;
    row.moved_bytes = n * v * kLossBytes, row.moved_back_bytes = n * v * kLossBackBytes;
    row.kernels = 12;
    const double table = static_cast<double>(vocabulary_) * h;
    row.all_parameters =
        norm() + (tied_ ? 0 : table) + (head_bias_ ? static_cast<double>(vocabulary_) : 0);
    // The masked-language transformation, the pooler, two norms and the next-sentence classifier.
    if (bert_) row.all_parameters += 2 * (h * h + h) + 2 * h + 2 * h + 2 - norm();
    // A copy if the table is tied and the head is on another stage.
    row.parameters = norm() + v * h;
    row.kept = row.kept_selective = row.kept_pointwise = row.kept_full = bytes(
        n * (h * unsplit_share(slice) * 2 * static_cast<double>(slice.element_bytes) + 4 * v));
    row.working = bytes(n * v * static_cast<double>(slice.element_bytes));
    if (slice.eager && gated_) row.working += bytes(n * v * kEagerLoss);
    row.output = Bytes{};
    if (slice.tensor > 1) row.exchanges = 1, row.exchanged = bytes(n * h * 2);
    add_further_tokens(row, slice);
    return row;
  }

  /// A further token has a block, a product that joins the block's input with the next token's
  /// embedding, two norms of these inputs and one before the head, whose table it shares.
  void add_further_tokens(LayerRow& row, const LayerSlice& slice) const {
    if (mtp_layers_ == 0) return;
    const auto h = static_cast<double>(hidden_), t = static_cast<double>(slice.tensor);
    const double n = device_tokens(slice);
    LayerRow again = row;
    again.all_parameters = again.parameters = 0;
    add_layer(again, block(slice, {.has_experts = experts_ > 0}));
    again.gemms.push_back({n, h / t, 2 * h});
    again.operations += 4 * n * static_cast<double>(slice.context) * h * h;
    again.parameters += 2 * h * h / t + 3 * norm();
    again.all_parameters += 2 * h * h + 3 * norm();
    for (std::int64_t i = 0; i < mtp_layers_; ++i) add_layer(row, again);
  }

  void add_projections(LayerRow& row, double n, double t, double all_tokens) const {
    const auto h = static_cast<double>(hidden_), a = static_cast<double>(heads_);
    const double q = a * head_size(), kv = kv_heads() * (head_size() + value_size());
    const double out = a * value_size(), gate = query_gate_ ? out : 0;
    double weights = 0;
    if (kv_rank_ > 0) {
      const auto qr = static_cast<double>(query_rank_), kr = static_cast<double>(kv_rank_);
      const auto rope = static_cast<double>(rotary_);
      const double up = a * (head_size() - rope + value_size());
      if (qr > 0) row.gemms.push_back({n, qr, h});
      row.gemms.push_back({n, q / t, qr > 0 ? qr : h});
      row.gemms.push_back({n, kr + rope, h});
      row.gemms.push_back({n, up / t, kr});
      weights = (qr > 0 ? h * qr + qr * q : h * q) + h * (kr + rope) + kr * up;
      row.parameters +=
          (qr > 0 ? h * qr : 0) + h * (kr + rope) + ((qr > 0 ? qr : h) * q + kr * up) / t;
      row.all_parameters += qr + kr;
    } else {
      row.gemms.push_back({n, (q + kv + gate) / t, h});
      weights = h * (q + kv + gate);
      row.parameters += weights / t;
    }
    row.gemms.push_back({n, h, out / t});
    row.parameters += out * h / t;
    row.operations += 2 * all_tokens * (weights + out * h);
    row.all_parameters += weights + out * h + (biases_ || qkv_biases_ ? q + kv : 0) +
                          (biases_ || output_bias_ ? h : 0) + (sinks_ ? a : 0) +
                          (qk_norm_ ? 2 * head_size() : 0);
  }

  double linear_keys() const { return static_cast<double>(linear_heads_ * linear_head_size_); }
  double linear_values() const {
    return static_cast<double>(linear_value_heads_ * linear_head_size_);
  }

  /// Queries, keys, values and a gate as wide as these; a step size and a decay for each head; the
  /// short convolution; and the way back.
  void add_linear_projections(LayerRow& row, double n, double t, double all_tokens) const {
    const auto h = static_cast<double>(hidden_), heads = static_cast<double>(linear_value_heads_);
    const double inner = 2 * linear_keys() + 2 * linear_values() + 2 * heads;
    const double weights = h * inner, out = linear_values() * h;
    const double convolved = 2 * linear_keys() + linear_values();
    row.gemms.push_back({n, inner / t, h});
    row.gemms.push_back({n, h, linear_values() / t});
    row.parameters += (weights + out) / t;
    row.operations += 2 * all_tokens * (weights + out);
    row.all_parameters += weights + out + convolved * static_cast<double>(linear_kernel_) +
                          2 * heads + static_cast<double>(linear_head_size_);
    row.moved_bytes += n * convolved / t * kActBytes;
    row.moved_back_bytes += n * convolved / t * kActBackBytes;
    row.kernels += kLinearKernels;
  }

  /// Within a chunk, products of keys with keys and queries, with values, and the inverse that
  /// makes updates of them; between chunks, the state is read twice and written once.
  void add_linear_attention(LayerRow& row, double n, double t, double all_tokens) const {
    const auto d = static_cast<double>(linear_head_size_);
    const double of_token = static_cast<double>(linear_value_heads_) * (kChunk * 5 * d + 6 * d * d);
    row.attention_operations = n / t * of_token;
    row.operations += all_tokens * of_token;
  }

  void add_feed_forward(LayerRow& row, double n, double t, double width, double all_tokens) const {
    const auto h = static_cast<double>(hidden_);
    row.gemms.push_back({n, (matrices() - 1) * width / t, h});
    row.gemms.push_back({n, h, width / t});
    row.parameters += matrices() * h * width / t;
    row.all_parameters += matrices() * h * width + (biases_ ? (matrices() - 1) * width + h : 0);
    row.moved_bytes += n * width / t * (gated_ ? kGatedBytes : kActBytes);
    row.moved_back_bytes += n * width / t * (gated_ ? kGatedBackBytes : kActBackBytes);
    row.operations += 2 * all_tokens * matrices() * h * width;
  }

  void add_experts(LayerRow& row, const LayerSlice& slice, double n, double all_tokens) const {
    const auto h = static_cast<double>(hidden_), t = static_cast<double>(slice.tensor);
    const auto all = static_cast<double>(experts_), active = static_cast<double>(active_);
    const double width = expert_ffn_ > 0 ? static_cast<double>(expert_ffn_) : ffn();
    const double local_experts = all / static_cast<double>(slice.expert);
    const auto together = static_cast<double>(slice.expert_tensor);
    const double sent = n / t * active;
    const double tokens_per_expert = sent * together / local_experts, part = width / together;
    row.gemms.push_back({n, all, h});
    row.gemms.push_back({tokens_per_expert, (matrices() - 1) * part, h, local_experts});
    row.gemms.push_back({tokens_per_expert, h, part, local_experts});
    const double weights = matrices() * h * width;
    row.expert_parameters = weights * local_experts / together;
    row.parameters += h * all;
    row.all_parameters += weights * all + h * all + (score_bias_ ? all : 0) +
                          (shared_gate_ ? h : 0) +
                          (expert_biases_ ? all * ((matrices() - 1) * width + h + 1) : 0);
    const double permuted = 4 * h * 2 * together;
    row.moved_bytes += sent * (width * (gated_ ? kGatedBytes : kActBytes) + permuted);
    row.moved_back_bytes += sent * (width * (gated_ ? kGatedBackBytes : kActBackBytes) + permuted);
    row.operations += 2 * all_tokens * active * weights;
    row.kernels += kExpertKernels;
    row.experts = all, row.active_experts = active;
    if (slice.expert > 1) {
      row.routed = bytes(sent * h * static_cast<double>(slice.element_bytes));
      if (slice.expert_tensor > 1)
        row.routed_together = bytes(static_cast<double>(row.routed.count) * together);
    }
    if (shared_ffn_ > 0) add_feed_forward(row, n, t, static_cast<double>(shared_ffn_), all_tokens);
  }

  /// Adds the scores and their use. A causal model computes half of a fused kernel's scores;
  /// `operations` counts all of them, as published rates do, but only those in reach of windows.
  void add_attention(LayerRow& row, const LayerSlice& slice, double n, double all_tokens) const {
    const double a = static_cast<double>(heads_) / static_cast<double>(slice.tensor);
    const auto s = static_cast<double>(sequence_);
    const auto b = static_cast<double>(slice.micro_batch);
    const double width = head_size() + value_size();
    const bool is_windowed = window_ > 0 && static_cast<double>(window_) < s;
    const double reach =
        is_windowed ? (s / 2 + static_cast<double>(window_)) / 2 : (bert_ ? s : s / 2);
    const double counted = is_windowed ? 2 * reach : s;
    row.operations += 2 * all_tokens * counted * static_cast<double>(heads_) * width;
    if (slice.fused_attention) {
      row.attention_operations = 2 * n * reach * a * width;
      return;
    }
    row.gemms.push_back({s, s, head_size(), b * a, false});
    row.gemms.push_back({s, value_size(), s, b * a, false});
    row.moved_bytes += b * a * s * s * kScoreBytes;
    row.moved_back_bytes += b * a * s * s * kScoreBackBytes;
    row.kernels += kUnfusedKernels;
  }

  /// A token in a block of separate operators.
  EagerBlock eager_block(const LayerSlice& slice, const Kind& kind) const {
    const auto h = static_cast<double>(hidden_), t = static_cast<double>(slice.tensor);
    const double turned = (static_cast<double>(heads_) + kv_heads()) * head_size() / t;
    const double rotary = kind.is_linear ? 0 : turned;
    return {.normed = 2 * h * unsplit_share(slice) + (qk_norm_ ? rotary : 0),
            .turned = rotary,
            .gated = kind.has_experts ? expert_outputs(t) : ffn() / t,
            .sent = kind.has_experts ? static_cast<double>(active_) * h / t : 0};
  }

  LayerRow block(const LayerSlice& slice, const Kind& kind) const {
    const auto h = static_cast<double>(hidden_), t = static_cast<double>(slice.tensor);
    const double n = device_tokens(slice), all_tokens = n * static_cast<double>(slice.context);
    LayerRow row{.name = kind.has_experts ? "expert block" : "block"};
    if (kind.is_linear) row.name = "linear " + row.name;
    row.kernels = kBlockKernels;
    if (kind.is_linear)
      add_linear_projections(row, n, t, all_tokens);
    else
      add_projections(row, n, t, all_tokens);
    const double pointwise = n * h * unsplit_share(slice);
    row.moved_bytes += pointwise * 2 * (kNormBytes + (dropout_ ? kAddBytes : 6)) +
                       n * projected(kind) / t * kCopyBytes;
    row.moved_back_bytes += pointwise * 2 * (kNormBackBytes + (dropout_ ? kAddBackBytes : 4)) +
                            n * projected(kind) / t * kCopyBytes;
    if (kind.is_linear)
      add_linear_attention(row, n, t, all_tokens);
    else
      add_attention(row, slice, n, all_tokens);
    if (kind.has_experts)
      add_experts(row, slice, n, all_tokens);
    else
      add_feed_forward(row, n, t, ffn(), all_tokens);
    row.parameters += 2 * norm(), row.all_parameters += 2 * norm();
    add_memory(row, slice, n, kind);
    if ((slice.eager || slice.keeps_eager) && gated_)
      add_eager(eager_block(slice, kind), n, slice, row);
    row.output = bytes(n * h * static_cast<double>(slice.element_bytes));
    if (slice.tensor > 1) row.exchanges = 2, row.exchanged = row.output;
    const double passed = kv_rank_ > 0 ? static_cast<double>(kv_rank_ + rotary_)
                                       : kv_heads() * (head_size() + value_size()) / t;
    row.keys_and_values = bytes(n * passed * static_cast<double>(slice.element_bytes));
    if (kind.is_linear)  // The state of a sequence.
      row.keys_and_values = bytes(static_cast<double>(slice.micro_batch * linear_head_size_) *
                                  linear_values() / t * static_cast<double>(slice.element_bytes));
    return row;
  }

  double projected(const Kind& kind) const {
    if (kind.is_linear) return 2 * linear_keys() + 2 * linear_values();
    return static_cast<double>(heads_) * (head_size() + value_size()) +
           kv_heads() * (head_size() + value_size());
  }

  /// Elements that activation functions of experts make for a token.
  double expert_outputs(double t) const {
    const double width = expert_ffn_ > 0 ? static_cast<double>(expert_ffn_) : ffn();
    return (static_cast<double>(active_) * width + static_cast<double>(shared_ffn_)) / t;
  }

  void add_memory(LayerRow& row, const LayerSlice& slice, double n, const Kind& kind) const {
    const auto h = static_cast<double>(hidden_), t = static_cast<double>(slice.tensor);
    const auto e = static_cast<double>(slice.element_bytes);
    const double wide = h * unsplit_share(slice) * (4 * e + (dropout_ ? 2 : 0));
    double inner = projected(kind) * e / t;
    const double kept_ffn = gated_ ? 3 : 2;
    if (kind.has_experts) {
      const double width = expert_ffn_ > 0 ? static_cast<double>(expert_ffn_) : ffn();
      const double sent = static_cast<double>(active_) / t;
      inner += sent * (kept_ffn * width + 2 * h * static_cast<double>(slice.expert_tensor)) * e +
               kept_ffn * static_cast<double>(shared_ffn_) * e / t;
    } else {
      inner += kept_ffn * ffn() * e / t;
    }
    if (kv_rank_ > 0) inner += static_cast<double>(query_rank_ + kv_rank_) * 2 * e;
    const double scores = slice.fused_attention || kind.is_linear
                              ? 4 * static_cast<double>(heads_) / t
                              : (dropout_ ? 2 * e + 1 : e) * static_cast<double>(heads_) / t *
                                    static_cast<double>(sequence_);
    row.kept_selective = bytes(n * (wide + inner));
    row.kept = bytes(n * (wide + inner + scores));
    // The outputs of two norms, and of the activation function.
    const double again =
        2 * h * unsplit_share(slice) * e + (kind.has_experts ? expert_outputs(t) : ffn() / t) * e;
    row.kept_pointwise = bytes(n * (wide + inner - again));
    row.kept_full = bytes(n * h * unsplit_share(slice) * e);
    row.working = bytes(n * (2 * ffn() / t + 2 * h) * e);
  }

  std::int64_t layers_ = 24, hidden_ = 1024, heads_ = 16, kv_heads_ = 0, head_size_ = 0, ffn_ = 0;
  std::int64_t vocabulary_ = 50257, sequence_ = 1024, positions_ = 0;
  bool gated_ = false, tied_ = true, biases_ = true, dropout_ = true, head_bias_ = false;
  bool bert_ = false;
  std::int64_t experts_ = 0, active_ = 0, expert_ffn_ = 0, shared_ffn_ = 0, dense_layers_ = 0;
  bool qk_norm_ = false, qkv_biases_ = false, output_bias_ = false, sinks_ = false;
  bool query_gate_ = false, expert_biases_ = false, score_bias_ = false, shared_gate_ = false;
  std::int64_t mtp_layers_ = 0, full_every_ = 0, linear_heads_ = 0, linear_value_heads_ = 0;
  std::int64_t linear_head_size_ = 0, linear_kernel_ = 0;
  std::int64_t query_rank_ = 0, kv_rank_ = 0, rotary_ = 0, value_size_ = 0, window_ = 0;
};

}  // namespace

std::unique_ptr<Workload> make_transformer() { return std::make_unique<Transformer>(); }

}  // namespace foretrace
