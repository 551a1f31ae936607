// Computes the memory of a device, in mixed precision with Adam:
//
//     weights      2 bytes per parameter (4 in single precision) and version kept
//     gradients    2 in fp16, 4 otherwise (Megatron's main gradients)
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

constexpr double kOptimizerBytes = 12;
/// A gradient is computed in 2 bytes and added to one of 4 (SimuMax's rows of LLaMA 3 70 B and 405
/// B).
constexpr double kMadeBytes = 6;
/// Share that the allocator loses to fragmentation; recalled from runs of Megatron-LM.
constexpr double kFragmentation = .03;
/// CUDA context, cuBLAS workspace and NCCL's buffers: 1.6 GB of an A100 are in use before a model
/// is loaded (BLOOM's chronicles), and NCCL takes about as much.
constexpr double kContextBytes = 2.5e9;

Bytes kept_of(const LayerRow& row, const Layout& layout) {
  switch (recompute_of(layout)) {
    case Recompute::none:
      return row.kept;
    case Recompute::selective:
      return row.kept_selective;
    case Recompute::full:
      return row.kept_full;
  }
  return {};
}

using MemoryParts = std::array<std::pair<const char*, double>, 7>;

MemoryParts parts_of_rank(const LayerTable& table, const std::vector<StageRows>& stages,
                          const Layout& layout, const RankPlan& rank) {
  double parameters = 0, experts = 0, kept = 0, logits = 0, working = 0, largest = 0;
  for (const auto& [i, share] : rank.parts) {
    parameters += parameters_of(table, stages[i]) - experts_of(table, stages[i]);
    experts += experts_of(table, stages[i]);
    for (const auto& [row, count] : stages[i]) {
      const double bytes = static_cast<double>(kept_of(table[row], layout).count);
      for (const Gemm& gemm : table[row].gemms) {
        if (gemm.has_weights && gemm.count == 1 && row + 1 < table.size())
          largest = std::max(largest, gemm.columns * gemm.inner);
      }
      if (row + 1 == table.size())
        logits = bytes + static_cast<double>(table[row].working.count);
      else
        kept += bytes * count;
      if (row > 0 && row + 1 < table.size()) {
        const double again =
            static_cast<double>((table[row].kept - kept_of(table[row], layout)).count);
        working = std::max(working, static_cast<double>(table[row].working.count) + again);
      }
    }
  }
  const auto shards = static_cast<double>(layout.data * layout.context);
  const double expert_shards = std::max(
      1., shards * static_cast<double>(layout.tensor) / static_cast<double>(layout.expert));
  const auto sharded = [&](double each, std::int64_t from) {
    if (layout.zero < from) return each * (parameters + experts);
    return each * (parameters / shards + experts / expert_shards);
  };
  const bool single = layout.precision == "fp32" || layout.precision == "tf32";
  const double in_flight = layout.schedule == "gpipe" && layout.pipeline > 1
                               ? static_cast<double>(layout.micro_batches())
                               : rank.in_flight;
  const double activations = kept / static_cast<double>(rank.parts.size()) * in_flight;
  const double state = layout.host_optimizer ? 0 : sharded(single ? 8 : kOptimizerBytes, 1);
  return {{{"weights", rank.versions * sharded(single ? 4 : 2, 3)},
           {"gradients", layout.lora ? 0 : sharded(single ? 4 : gradient_bytes(layout), 2)},
           {"optimizer state", layout.lora ? 0 : state},
           {"activations", layout.host_checkpoints ? 0 : activations},
           {"logits", logits},
           {"layer at work", std::max(0., working - logits)},
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
      static_cast<double>(need.allocated.count) * (1 + kFragmentation) + kContextBytes);
  return need;
}

bool runs_out(const StepMemory& memory, const Platform& platform) {
  return memory.reserved > platform.device.memory;
}

}  // namespace foretrace
