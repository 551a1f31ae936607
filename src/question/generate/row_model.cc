#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "question/generate/table_row.h"

namespace foretrace {
namespace {

/// Blocks and width of a GPT whose shape is not stated: the width is 128 times the blocks, as in
/// GPT-3 and its relatives, and the blocks are a multiple of the stages.
std::string inferred_shape(double parameters, const Layout& layout) {
  constexpr double kAspect = 128;
  const double width = std::cbrt(parameters * kAspect / 12);
  const double hidden = std::max(1., std::round(width / kAspect / 8)) * kAspect * 8;
  const auto stages = static_cast<double>(layout.pipeline);
  const double layers =
      std::max(1., std::round(parameters / (12 * hidden * hidden) / stages)) * stages;
  return fmt::format("transformer:layers={},hidden={},heads={}", to_text(layers), to_text(hidden),
                     to_text(hidden / kAspect));
}

/// Number of heads if it is not stated: heads are about 128 wide, a multiple of 8, and divide
/// evenly among tensor-parallel ranks.
double inferred_heads(std::int64_t hidden, const Layout& layout) {
  constexpr std::int64_t kUsualWidth = 128, kStep = 8;
  std::int64_t best = kStep;
  for (std::int64_t width = kStep; width <= 2 * kUsualWidth; width += kStep) {
    const bool fits = hidden % (width * layout.tensor) == 0;
    if (fits && std::abs(width - kUsualWidth) < std::abs(best - kUsualWidth)) best = width;
  }
  return static_cast<double>(hidden / best);
}

/// The number of parameters that a row states, if it does.
std::optional<double> stated_parameters(const TableRow& row) {
  constexpr double kBillions = 1e6;  // Smaller numbers of parameters are in billions.
  const auto stated = row.number("parameters");
  return stated && *stated < kBillions ? *stated * kGiga : stated;
}

/// Adds the usual vocabulary (GPT-2's, padded, or BLOOM's) that is nearest to what the stated
/// parameters leave for the embedding table.
void add_vocabulary(const TableRow& row, std::string& settings) {
  constexpr double kUsual[] = {51'200, 250'880};
  const double layers = *row.number("layers"), hidden = *row.number("hidden");
  const double blocks = layers * (12 * hidden * hidden + 13 * hidden);
  const double left = (*stated_parameters(row) - blocks) / hidden;
  const double nearest =
      std::abs(left - kUsual[0]) < std::abs(left - kUsual[1]) ? kUsual[0] : kUsual[1];
  settings += ",vocabulary=" + to_text(nearest);
}

/// A kind of model: GPT's blocks, or LLaMA's with a gate and with 8 heads of keys and values or as
/// many as heads; with a table for embedding and head, or two.
struct ModelKind {
  bool gated, tied;
  bool has_few = false;  ///< Heads of keys and values.

  double parameters(double layers, double hidden, double ffn, double table, double heads) const {
    const double kv = has_few ? kFewHeads / heads : 1;
    const double block = hidden * hidden * (2 + 2 * kv) + (gated ? 3 : 2) * hidden * ffn;
    return layers * block + (tied ? 1 : 2) * table;
  }
  static constexpr double kFewHeads = 8;
};

/// Adds widths of the feed-forward layer and the vocabulary that a row states, and the kind of
/// model whose parameters are nearest to the stated ones.
void add_widths(const TableRow& row, double heads, std::string& settings) {
  constexpr ModelKind kKinds[] = {{true, true},        {true, false}, {true, true, true},
                                  {true, false, true}, {false, true}, {false, false}};
  const double hidden = *row.number("hidden"), ffn = *row.number("ffn");
  const double vocabulary = *row.number("vocabulary");
  const double stated = row.number("parameters").value_or(0);
  const auto away = [&](const ModelKind& kind) {
    if (kind.has_few && std::fmod(heads, ModelKind::kFewHeads) != 0) return HUGE_VAL;
    return std::abs(
        kind.parameters(*row.number("layers"), hidden, ffn, vocabulary * hidden, heads) - stated);
  };
  const ModelKind& kind = *std::ranges::min_element(kKinds, {}, away);
  settings += fmt::format(",ffn={},vocabulary={},gated={},kv_heads={},tied={}", to_text(ffn),
                          to_text(vocabulary), kind.gated,
                          to_text(kind.has_few ? ModelKind::kFewHeads : heads), kind.tied);
  if (kind.gated) settings += ",biases=false,dropout=false";
}

void add_sizes(const TableRow& row, std::string& settings) {
  if (row.has("ffn") && row.has("vocabulary"))
    add_widths(row, row.number("heads").value_or(1), settings);
  else if (row.has("parameters"))
    add_vocabulary(row, settings);
}

/// Adds the dense layers of a model of experts that was cut to fewer layers: the same share, and at
/// least one.
void add_dense_layers(const std::string& preset, const TableRow& row, std::string& settings) {
  const auto whole = find_workload(preset);
  const nlohmann::json described = write_json(*whole);
  const double dense = described.value("dense_layers", 0.);
  if (dense <= 1) return;
  const double share = dense / static_cast<double>(whole->layer_count());
  settings += ",dense_layers=" + to_text(std::max(1., std::round(share * *row.number("layers"))));
}

/// The preset for a model's name: the first whose blocks divide by the stages, with embedding and
/// head counted or not. Empty if there is none.
std::string preset_of(const std::string& model, const Layout& layout) {
  const auto presets = presets_recorded_as(model);
  for (const std::string_view preset : presets) {
    const std::int64_t layers = find_workload(preset)->layer_count();
    if (layers % layout.pipeline == 0 || (layers + 2) % layout.pipeline == 0)
      return std::string(preset);
  }
  return presets.empty() ? "" : std::string(presets.front());
}

/// Throws Error if a model made from a row's shape is not the one whose parameters the row states:
/// it may have experts, which no column says.
void check_parameters(const TableRow& row, const std::string& text) {
  constexpr double kTolerance = .15;  // Vocabularies and what gates add are guessed.
  const auto stated = stated_parameters(row);
  if (!stated) return;
  const double made = find_workload(text)->parameters();
  if (std::abs(made / *stated - 1) > kTolerance)
    throw Error(
        fmt::format("model: must have the parameters that the row states, {:.3g}; its "
                    "shape has {:.3g}, got '{}'",
                    *stated, made, row.text("model")));
}

/// Whether a row states the width of `preset`, which says more of its blocks than a row does.
bool has_width_of(const std::string& preset, const TableRow& row) {
  if (preset.empty()) return false;
  const nlohmann::json described = write_json(*find_workload(preset));
  return row.number("hidden") == described.value("hidden", 0.);
}

/// The model that a row is priced as, without settings: a preset, `usual`, or a transformer with
/// the row's shape.
std::string base_model(const TableRow& row, const std::string& usual, const std::string& preset,
                       bool has_shape, const Layout& layout) {
  const std::string model = row.text("model");
  if (!preset.empty() && !has_shape) return preset;
  if (has_shape || !usual.empty()) return usual.empty() ? "transformer" : usual;
  if (model.starts_with("GPT") && row.has("parameters"))
    return inferred_shape(*row.number("parameters"), layout);
  if (model.starts_with("Llama-3.1-8B")) return "llama3-8b";
  throw Error(fmt::format(
      "model: must be a known one, or the row must have layers and hidden, got '{}'", model));
}

/// The settings that a row adds to a model, such as "layers=4,sequence=4096"; the width is only one
/// of them if the row has the whole shape.
std::string stated_settings(const TableRow& row, const std::string& text, bool has_shape,
                            const Layout& layout) {
  std::string settings;
  const auto add = [&](std::string_view column, std::string_view setting) {
    if (const auto value = row.number(column))
      settings += fmt::format("{}{}={}", settings.empty() ? "" : ",", setting, to_text(*value));
  };
  if (text.find(':') == std::string::npos || has_shape) add("layers", "layers");
  if (has_shape) {
    add("hidden", "hidden"), add("heads", "heads");
    if (!row.has("heads"))
      settings += ",heads=" + to_text(inferred_heads(std::llround(*row.number("hidden")), layout));
  }
  add("sequence", "sequence");
  if (text.starts_with("mpt") || text.starts_with("transformer")) add("sequence", "positions");
  return settings;
}

}  // namespace

std::string workload_text(const TableRow& row, const std::string& usual, const Layout& layout) {
  const std::string preset = preset_of(row.text("model"), layout);
  const bool has_shape = row.has("layers") && row.has("hidden") &&
                         (row.has("heads") || preset.empty()) && !has_width_of(preset, row);
  std::string text = base_model(row, usual, preset, has_shape, layout);
  std::string settings = stated_settings(row, text, has_shape, layout);
  if (has_shape) add_sizes(row, settings);
  if (!preset.empty() && !has_shape && row.has("layers")) add_dense_layers(text, row, settings);
  if (settings.empty()) return text;
  text += (text.find(':') == std::string::npos ? ":" : ",") + settings;
  if (has_shape && usual.empty()) check_parameters(row, text);
  return text;
}

}  // namespace foretrace
