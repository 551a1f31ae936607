#include "price/stages.h"

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {

namespace {

/// How many layers each stage has, and which one the head.
struct Division {
  std::vector<std::int64_t> layers;
  std::size_t head = 0;
};

/// Extra layers at both ends count as one layer each.
Division even(std::int64_t layers, std::int64_t extra, std::int64_t stages) {
  const std::int64_t all = layers + 2 * extra, least = all / stages, more = all % stages;
  Division division{.layers = std::vector<std::int64_t>(static_cast<std::size_t>(stages), least),
                    .head = static_cast<std::size_t>(stages - 1)};
  for (std::int64_t i = 0; i < more; ++i) ++division.layers[static_cast<std::size_t>(i)];
  division.layers.front() -= extra, division.layers.back() -= extra;
  return division;
}

/// Multiplications of a token by weights, as nanotron counts them; fewer with grouped keys and
/// values, which it counts as if they were not.
double cost_of(const LayerRow& row) {
  double sum = 0;
  for (const Gemm& gemm : row.gemms) sum += gemm.has_weights ? gemm.columns * gemm.inner : 0;
  return sum;
}

/// nanotron fills a stage until it has more than its share of the costs; the head counts, but the
/// conversion of the logits and the loss behind it do not, and are blocks of their own
/// (src/nanotron/models/base.py).
Division by_cost(const LayerTable& table, std::int64_t pipeline) {
  const auto stages = static_cast<std::size_t>(pipeline);
  double all = cost_of(table.back()), sum = 0;
  for (std::size_t row = 1; row + 1 < table.size(); ++row)
    all += static_cast<double>(table[row].count) * cost_of(table[row]);
  Division division{.layers = std::vector<std::int64_t>(stages)};
  std::size_t& stage = division.head;
  const auto share = [&] {
    return all * (static_cast<double>(stage + 1) / static_cast<double>(stages));
  };
  for (std::size_t row = 1; row + 1 < table.size(); ++row) {
    for (std::int64_t i = 0; i < table[row].count; ++i) {
      ++division.layers[stage];
      sum += cost_of(table[row]);
      if (stage + 1 < stages && sum > share()) ++stage;
    }
  }
  constexpr std::size_t kBehindHead = 2;
  if (division.head + kBehindHead + 1 < stages)
    throw Error(
        fmt::format("pp: nanotron leaves stages without any block if the head has more than two "
                    "stages' share of the operations, got {}",
                    pipeline));
  return division;
}

}  // namespace

std::vector<StageRows> split_stages(const LayerTable& table, const Layout& layout) {
  std::int64_t layers = 0;
  for (std::size_t row = 1; row + 1 < table.size(); ++row) layers += table[row].count;
  const std::int64_t parts = layout.pipeline * layout.virtual_stages;
  const std::int64_t extra = layout.embedding_is_layer ? 1 : 0;
  if (layers + 2 * extra < parts)
    throw Error(fmt::format("pp: must not exceed the layers, {}, got {} x {}", layers,
                            layout.pipeline, layout.virtual_stages));
  const Division division =
      layout.framework == "nanotron" ? by_cost(table, parts) : even(layers, extra, parts);
  std::vector<StageRows> stages(static_cast<std::size_t>(parts));
  stages.front().emplace_back(0, 1);
  std::size_t row = 1;
  std::int64_t left = table.size() > 2 ? table[1].count : 0;
  for (std::size_t part = 0; part < stages.size(); ++part) {
    std::int64_t wanted = division.layers[part];
    while (wanted > 0 && row + 1 < table.size()) {
      const std::int64_t taken = std::min(wanted, left);
      if (taken > 0) stages[part].emplace_back(row, static_cast<double>(taken));
      wanted -= taken, left -= taken;
      if (left == 0 && ++row + 1 < table.size()) left = table[row].count;
    }
  }
  stages[division.head].emplace_back(table.size() - 1, 1);
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
          .expert_tensor = layout.of_expert(),
          .sequence_parallel = layout.sequence_parallel,
          .fused_attention = layout.fused_attention,
          .eager = is_eager(layout),
          .keeps_eager = framework_of(layout).keeps_separate && layout.pointwise != "fused",
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
