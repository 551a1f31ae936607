#pragma once

// A model as a table of layers: what each computes, keeps and passes on, without a trace.
//
//     description (JSON or preset) --layers(slice)--> table of layers --price--> times
//
//     embedding | block x 96                              | head
//               | 4 GEMMs, attention, bytes of the rest   |
//
// A table is for one device and one micro-batch: what tensor, context and expert parallelism leave
// of a layer. Numbers of operations and elements are doubles, because they pass 2^63 for large
// jobs.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace {

/// The part of a layer that the backward pass computes again instead of keeping it. none: nothing.
/// selective: the products of attention. pointwise: norms and activation functions too. full: the
/// whole layer, from its input.
enum class Recompute : std::uint8_t { none, selective, pointwise, full };

/// The part of a model that one device computes for one micro-batch.
struct LayerSlice {
  std::int64_t micro_batch = 1;  ///< Sequences, or images.
  std::int64_t tensor = 1, context = 1, expert = 1;
  std::int64_t expert_tensor = 1;  ///< Ranks that share an expert.
  /// Parts that tensor parallelism leaves whole are split by sequence.
  bool sequence_parallel = false;
  bool fused_attention = true;  ///< Scores never reach memory (FlashAttention).
  bool eager = false;           ///< Each operator of norms, rotary embedding and gates is a kernel.
  bool keeps_eager = false;     ///< What such kernels need is kept; torchtitan recomputes it.
  bool adapters = false;        ///< Products have adapters of low rank.
  std::int64_t element_bytes = 2;  ///< Size of an activation.
};

/// columns x inner weights (or a second operand) applied to rows x inner. The backward pass has two
/// of the same operations: (rows, inner, columns) and (inner, columns, rows).
struct Gemm {
  double rows = 0, columns = 0, inner = 0;
  double count = 1;         ///< Independent products in one batched or grouped kernel.
  bool has_weights = true;  ///< Otherwise both operands are activations.
};

struct LayerRow {
  std::string name;
  std::int64_t count = 1;  ///< Equal layers, one after the other.
  std::vector<Gemm> gemms{};
  double attention_operations = 0;  ///< Forward, of a fused kernel; backward has 2.5 times as many.
  double moved_bytes = 0;           ///< Moved by memory-bound kernels, forward.
  double moved_back_bytes = 0;      ///< The same, backward.
  std::int64_t kernels = 0;         ///< Number of kernels, forward.
  double parameters = 0;            ///< One layer on one device, without experts.
  double expert_parameters = 0;     ///< Its experts on one device.
  double all_parameters = 0;        ///< One layer of the whole model.
  double operations = 0;  ///< Forward, all devices of the layer together, nothing computed twice.
  /// Kept for the backward pass, by Recompute.
  Bytes kept{}, kept_selective{}, kept_pointwise{}, kept_full{};
  Bytes working{};             ///< Most that exists at once while it runs, beyond what is kept.
  Bytes output{};              ///< Passed to the next layer.
  std::int64_t exchanges = 0;  ///< Sums over tensor parallel ranks, each of `exchanged` bytes.
  Bytes exchanged{};
  Bytes keys_and_values{};  ///< One device's, which context parallel ranks pass on.
  Bytes routed{};           ///< Sent to experts, and the same amount back; 0 without experts.
  Bytes routed_together{};  ///< Of all ranks that share experts, which gather and scatter it.
  double experts = 0, active_experts = 0;  ///< Of the whole layer, and for a token.
};

/// Rows from input to output. Pipelines divide the layers between the first and the last row.
using LayerTable = std::vector<LayerRow>;

class Workload : public Described {
 public:
  /// Throws Error if the slice does not divide the model.
  virtual LayerTable layers(const LayerSlice& slice) const = 0;
  virtual std::int64_t layer_count() const = 0;  ///< Between embedding and head.
  virtual std::int64_t tokens() const = 0;       ///< Per sample: its length, or 1 for images.
  /// The numbers that must be close for two workloads to be alike: logarithms of sizes.
  virtual std::vector<double> traits() const = 0;

  double parameters() const;  ///< The whole model; tables that layers share count once.
  double operations() const;  ///< Forward, for one sample.
};

struct WorkloadEntry {
  std::string_view name, summary;
};
/// Presets and families, sorted by name.
const std::vector<WorkloadEntry>& workloads();

/// "gpt3-175b", "llama3-70b:layers=12,sequence=4096", "transformer:layers=24,hidden=1024,heads=16",
/// or the path of a JSON file, {"use": FAMILY or PRESET, settings} or a config.json of Hugging
/// Face, and settings behind it ("config.json:sequence=8192"). Also knows presets as published
/// tables write them ("LLAMA3.1_405B"). Throws Error with the nearest name.
std::unique_ptr<Workload> find_workload(std::string_view name_or_path);

/// The presets that a name in a published table may mean, most likely first; empty if none.
std::vector<std::string_view> presets_recorded_as(std::string_view name);

}  // namespace foretrace
