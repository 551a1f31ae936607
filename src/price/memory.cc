// Computes the memory of a device, in mixed precision with Adam:
//
//     weights      bytes per parameter (2 for Megatron: see frameworks.def) and version kept
//     gradients    4, and 2 in fp16
//     optimizer    12: a copy, momentum and variance of 4 bytes each
//     activations  bytes kept by a layer, times micro-batches in flight
//
// ZeRO divides optimizer state (1), gradients (2) and weights (3) by the data parallel ranks.

#include "price/memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace foretrace {
namespace {

/// A gradient is computed in 2 bytes and added to one of 4 (SimuMax's rows of LLaMA 3 70 B and 405
/// B).
constexpr double kMadeBytes = 6;
/// CUDA context, cuBLAS workspace and NCCL's buffers: 1.6 GB of an A100 are in use before a model
/// is loaded (BLOOM's chronicles), and NCCL takes about as much.
constexpr double kContextBytes = 2.5e9;
/// Standard deviation of the logarithm of predicted sizes: a half of published steps are within 3 %
/// (SimuMax), 6 % (torchtitan), 8 % (nanotron), 14 % (BLOOM) and 15 % (prime-rl).
constexpr double kSizeError = .15;

/// For each parameter.
struct KeptBytes {
  double weights, gradients, state, gathered;
};

KeptBytes kept_bytes(const Layout& layout) {
  const Framework& framework = framework_of(layout);
  KeptBytes kept{framework.weights, framework.gradients, framework.optimizer, 0};
  if (layout.precision == "fp16") kept.gradients = 2;
  if (layout.precision == "fp32" || layout.precision == "tf32") kept = {4, 4, 8, 0};
  if (layout.host_optimizer) kept.state = 0;
  if (layout.lora) kept.gradients = kept.state = 0;
  if (layout.zero >= 3) kept.gathered = framework.gathered;
  return kept;
}

/// A gathered parameter: the type of products, but for narrow ones, which are cast on the way.
double gathered_bytes(const Layout& layout) {
  return layout.precision == "fp32" || layout.precision == "tf32" ? 4 : 2;
}

/// The share of the logits that exist at once.
double piece_of_logits(const LayerRow& head, const Layout& layout) {
  if (!layout.fused_loss || head.gemms.empty()) return 1;
  return std::min(1., head.gemms.front().inner / head.gemms.front().columns);
}

using MemoryParts = std::array<std::pair<const char*, double>, 9>;

MemoryParts parts_of_rank(const LayerTable& table, const std::vector<StageRows>& stages,
                          const Layout& layout, const RankPlan& rank) {
  const Framework& framework = framework_of(layout);
  double parameters = 0, experts = 0, kept = 0, logits = 0, working = 0, largest = 0, layer = 0;
  for (const auto& [i, share] : rank.parts) {
    parameters += parameters_of(table, stages[i]) - experts_of(table, stages[i]);
    experts += experts_of(table, stages[i]);
    for (const auto& [row, count] : stages[i]) {
      const double bytes = kept_of(table[row], layout);
      layer = std::max(layer, table[row].parameters + table[row].expert_parameters);
      for (const Gemm& gemm : table[row].gemms) {
        if (gemm.has_weights && gemm.count == 1 && row + 1 < table.size())
          largest = std::max(largest, gemm.columns * gemm.inner);
      }
      if (row + 1 == table.size())
        logits = (bytes + static_cast<double>(table[row].working.count)) *
                 (is_eager(layout) ? 1 : framework.logits / 6) *
                 piece_of_logits(table[row], layout);
      else
        kept += bytes * count;
      if (row > 0 && row + 1 < table.size()) {
        const double again = static_cast<double>(table[row].kept.count) - bytes;
        working = std::max(working, static_cast<double>(table[row].working.count) + again);
      }
    }
  }
  const auto shards = static_cast<double>(layout.shards());
  const double expert_shards =
      std::max(1., shards * static_cast<double>(layout.tensor) /
                       static_cast<double>(layout.expert * layout.of_expert()));
  const auto sharded = [&](double each, std::int64_t from) {
    if (sharded_in_passes(layout) < from) return each * (parameters + experts);
    return each * (parameters / shards + experts / expert_shards);
  };
  double in_flight = rank.in_flight;
  if (rank.keeps_all) {
    in_flight = 0;
    for (const auto& [part, share] : rank.parts)
      in_flight += share * static_cast<double>(layout.micro_batches() / layout.flushes);
  }
  const double activations = kept / static_cast<double>(rank.parts.size()) * in_flight;
  const KeptBytes each = kept_bytes(layout);
  // FSDP keeps its own shard, and what it has gathered in the precision of products. Published
  // pipelines of torchtitan need 12 % more, as if they kept all in 4 bytes.
  const bool keeps_gathered =
      framework.gathered > framework.weights && layout.zero == 2 && layout.pipeline == 1;
  const double weights = keeps_gathered
                             ? each.weights * (parameters / shards + experts / expert_shards) +
                                   gathered_bytes(layout) * (parameters + experts)
                             : sharded(each.weights, 3);
  return {{{"weights", rank.versions * weights},
           {"gradients", sharded(each.gradients, 2)},
           {"optimizer state", sharded(each.state, 1)},
           {"activations", layout.host_checkpoints ? 0 : activations},
           {"logits", logits},
           {"layer at work", std::max(0., working - logits)},
           {"gathered layers", each.gathered * layer},
           {"buckets", layout.zero >= 1 ? framework.buffers : 0},
           {"gradient of the largest matrix", largest * kMadeBytes}}};
}

double sum_of(const MemoryParts& parts) {
  double sum = 0;
  for (const auto& [name, bytes] : parts) sum += bytes;
  return sum;
}

}  // namespace

StepMemory memory_need(const LayerTable& table, const std::vector<StageRows>& stages,
                       const Layout& layout, const PipelineShape& shape) {
  MemoryParts most{};
  for (const RankPlan& rank : shape.ranks) {
    const MemoryParts parts = parts_of_rank(table, stages, layout, rank);
    if (sum_of(parts) > sum_of(most)) most = parts;
  }
  StepMemory need;
  for (const auto& [name, bytes] : most) {
    if (bytes > 0) need.parts.emplace_back(name, Bytes{std::llround(bytes)});
  }
  std::ranges::stable_sort(need.parts,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [name, bytes] : need.parts) need.allocated += bytes;
  need.reserved.count = std::llround(
      static_cast<double>(need.allocated.count) * (1 + framework_of(layout).lost) + kContextBytes);
  return need;
}

double out_of_memory(const StepMemory& memory, const Platform& platform) {
  const double ratio = static_cast<double>(memory.reserved.count) /
                       std::max(1., static_cast<double>(platform.device.memory.count));
  return .5 * std::erfc(-std::log(std::max(ratio, 1e-9)) / kSizeError / std::sqrt(2.));
}

bool runs_out(const StepMemory& memory, const Platform& platform) {
  return memory.reserved > platform.device.memory;
}

}  // namespace foretrace
