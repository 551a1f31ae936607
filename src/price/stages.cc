#include "price/stages.h"

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {

namespace {

/// nanotron gives each stage an equal share of the operations, so that a large head leaves stages
/// without any layer.
void check_shares(const LayerTable& table, const Layout& layout) {
  if (layout.framework != "nanotron" || layout.pipeline == 1) return;
  double all = 0;
  for (const LayerRow& row : table) all += static_cast<double>(row.count) * row.operations;
  if (table.back().operations * static_cast<double>(layout.pipeline) > 2 * all)
    throw Error(
        fmt::format("pp: nanotron leaves stages empty if the head has more than two "
                    "stages' share of the operations, got {}",
                    layout.pipeline));
}

}  // namespace

std::vector<StageRows> split_stages(const LayerTable& table, const Layout& layout) {
  check_shares(table, layout);
  std::int64_t layers = 0;
  for (std::size_t row = 1; row + 1 < table.size(); ++row) layers += table[row].count;
  const std::int64_t parts = layout.pipeline * layout.virtual_stages;
  const std::int64_t extra = layout.embedding_is_layer ? 1 : 0;  // Extra layers at each end.
  if (layers + 2 * extra < parts)
    throw Error(fmt::format("pp: must not exceed the layers, {}, got {} x {}", layers,
                            layout.pipeline, layout.virtual_stages));
  const std::int64_t all = layers + 2 * extra, least = all / parts, more = all % parts;
  std::vector<StageRows> stages(static_cast<std::size_t>(parts));
  std::size_t row = 1;
  std::int64_t left = table.size() > 2 ? table[1].count : 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    StageRows& stage = stages[static_cast<std::size_t>(part)];
    std::int64_t wanted = least + (part < more ? 1 : 0);
    if (part == 0) stage.emplace_back(0, 1), wanted -= extra;
    if (part == parts - 1) wanted -= extra;
    while (wanted > 0 && row + 1 < table.size()) {
      const std::int64_t taken = std::min(wanted, left);
      if (taken > 0) stage.emplace_back(row, static_cast<double>(taken));
      wanted -= taken, left -= taken;
      if (left == 0 && ++row + 1 < table.size()) left = table[row].count;
    }
  }
  stages.back().emplace_back(table.size() - 1, 1);
  return stages;
}

double parameters_of(const LayerTable& table, const StageRows& stage) {
  double sum = 0;
  bool has_embedding = false;
  for (const auto& [row, count] : stage) {
    // A table shared by embedding and head is stored only once.
    const bool shared = row + 1 == table.size() && has_embedding &&
                        table[row].all_parameters < table.front().all_parameters / 2;
    has_embedding = has_embedding || row == 0;
    if (!shared) sum += count * (table[row].parameters + table[row].expert_parameters);
  }
  return sum;
}

double experts_of(const LayerTable& table, const StageRows& stage) {
  double sum = 0;
  for (const auto& [row, count] : stage) sum += count * table[row].expert_parameters;
  return sum;
}

double layers_of(const StageRows& stage) {
  double sum = 0;
  for (const auto& [row, count] : stage) sum += count;
  return sum;
}

std::int64_t sharded_in_passes(const Layout& layout) {
  const bool keeps = layout.framework == "torchtitan" && layout.pipeline > 1 && layout.zero == 2;
  return keeps ? 1 : layout.zero;
}

bool is_eager(const Layout& layout) {
  return layout.pointwise == "usual" ? framework_of(layout).separate : layout.pointwise == "eager";
}

LayerSlice slice_of(const Layout& layout) {
  return {.micro_batch = layout.micro_batch,
          .tensor = layout.tensor,
          .context = layout.context,
          .expert = layout.expert,
          .sequence_parallel = layout.sequence_parallel,
          .fused_attention = layout.fused_attention,
          .eager = is_eager(layout),
          .keeps_eager = framework_of(layout).separate,
          .adapters = layout.lora,
          .element_bytes = layout.precision == "fp32" || layout.precision == "tf32" ? 4 : 2};
}

Recompute recompute_of(const Layout& layout) {
  if (layout.recompute == "full") return Recompute::full;
  if (layout.recompute == "pointwise") return Recompute::pointwise;
  return layout.recompute == "selective" ? Recompute::selective : Recompute::none;
}

double kept_of(const LayerRow& row, const Layout& layout) {
  const auto bytes = [](Bytes size) { return static_cast<double>(size.count); };
  switch (recompute_of(layout)) {
    case Recompute::none:
      return bytes(row.kept);
    case Recompute::selective:
      return bytes(row.kept_selective);
    case Recompute::pointwise:
      return bytes(row.kept_pointwise);
    case Recompute::full:
      break;
  }
  const double share = layout.recompute_share;
  return share * bytes(row.kept_full) + (1 - share) * bytes(row.kept);
}

const Framework& framework_of(const Layout& layout) {
  static constexpr Framework kAll[] = {
#define FRAMEWORK(name, ...) {#name, __VA_ARGS__},
#include "price/frameworks.def"
#undef FRAMEWORK
  };
  const auto* const found = std::ranges::find(kAll, layout.framework, &Framework::name);
  return found == std::end(kAll) ? kAll[0] : *found;
}

bool uses_engine(const Layout& layout) { return layout.framework == "megatron"; }

double gradient_bytes(const Layout& layout) { return layout.precision == "fp16" ? 2 : 4; }

}  // namespace foretrace
