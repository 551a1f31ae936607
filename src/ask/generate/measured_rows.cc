#include "ask/generate/measured_rows.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kGiga = 1e9;
constexpr double kGibi = 1073741824.;
constexpr std::string_view kOutOfMemory = "oom";

std::string letters_and_digits(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return kept;
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else if (c != '\r')
      cells.back() += c;
  }
  return cells;
}

struct Column {
  std::string_view name;
  std::vector<std::string_view> names;
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
#define COLUMN(name, ...) {#name, __VA_ARGS__},
#include "ask/generate/columns.def"
#undef COLUMN
  };
  return all;
}

std::string machine_of(const std::string& device) {
  static constexpr std::pair<std::string_view, std::string_view> kHosts[] = {
#define RECORDED_HOST(start, machine) {start, machine},
#include "ask/generate/hosts.def"
#undef RECORDED_HOST
  };
  const std::string letters = letters_and_digits(device);
  std::string found;
  std::size_t longest = 0;
  for (const auto& [start, machine] : kHosts) {
    if (letters.starts_with(start) && start.size() > longest)
      longest = start.size(), found = machine;
  }
  return found;
}

/// Cells by our names of columns; empty and "n/a" cells are not there.
class Row {
 public:
  Row(const std::vector<std::string>& heading, std::vector<std::string> cells) {
    for (std::size_t i = 0; i < heading.size() && i < cells.size(); ++i) {
      if (heading[i].empty() || cells[i].empty() || cells[i] == "n/a") continue;
      cells_.emplace(heading[i], std::move(cells[i]));
    }
  }

  bool has(std::string_view name) const { return cells_.contains(name); }
  std::string text(std::string_view name) const {
    const auto found = cells_.find(name);
    return found == cells_.end() ? "" : found->second;
  }
  std::string lower(std::string_view name) const {
    std::string value = text(name);
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
    return value;
  }
  std::optional<double> number(std::string_view name) const {
    if (!has(name)) return std::nullopt;
    const std::string value = text(name);
    double read = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
    if (error != std::errc())
      throw Error(std::string(name) + ": must be a number, got '" + value + "'");
    const std::string_view rest(end, static_cast<std::size_t>(value.data() + value.size() - end));
    if (rest == "B") return read * kGiga;
    if (!rest.empty()) throw Error(std::string(name) + ": must be a number, got '" + value + "'");
    return read;
  }
  void read(std::string_view name, std::int64_t& value) const {
    if (const auto read = number(name)) value = std::llround(*read);
  }

 private:
  std::map<std::string, std::string, std::less<>> cells_;
};

std::string precision_of(const Row& row, const std::string& usual) {
  const std::string text = row.lower("precision");
  for (const auto& [word, precision] : std::initializer_list<std::pair<const char*, const char*>>{
           {"fp4", "fp4"}, {"fp8", "fp8"}, {"float8", "fp8"}, {"bf16", "bf16"}, {"fp16", "fp16"}}) {
    if (text.find(word) != std::string::npos) return precision;
  }
  return usual;
}

void read_recompute(const Row& row, Layout& layout) {
  const std::string text = row.lower("recompute");
  if (text.starts_with("true") || text.starts_with("full")) layout.recompute = "full";
  if (text.starts_with("false")) layout.recompute = "none";
  if (text.find("selective") != std::string::npos) layout.recompute = "selective";
  if (text.find("sequence parallel") != std::string::npos) layout.sequence_parallel = true;
}

/// "ZeRO" in the name of a variant that has no column for it: all is sharded, and checkpoints are
/// on the host, as DeepSpeed's examples for its third stage have it (recalled).
void read_variant(const Row& row, Layout& layout) {
  const std::string variant = row.lower("variant"), model = row.lower("model");
  if (!row.has("zero") && variant.find(" zero") != std::string::npos)
    layout.zero = 3, layout.host_checkpoints = true;
  if (variant.find("offload") != std::string::npos) layout.host_optimizer = true;
  layout.lora = variant.find("lora") != std::string::npos || model.ends_with("lora");
}

/// "26.08 NeMo Container": the months of the first such release in a variant; 0 without one.
double release_of(const std::string& variant) {
  constexpr double kMonths = 12;
  const auto digit = [&](std::size_t i) {
    return std::isdigit(static_cast<unsigned char>(variant[i])) != 0;
  };
  for (std::size_t i = 0; i + 5 <= variant.size(); ++i) {
    if (!digit(i) || !digit(i + 1) || variant[i + 2] != '.' || !digit(i + 3) || !digit(i + 4))
      continue;
    return kMonths * std::stod(variant.substr(i, 2)) + std::stod(variant.substr(i + 3, 2));
  }
  return 0;
}

void read_zero(const Row& row, Layout& layout) {
  const std::string text = row.lower("zero");
  if (text.empty()) return;
  if (text == "y") layout.zero = 1;
  if (text == "n") layout.zero = 0;
  if (text == "shard_grad_op") layout.zero = 2;
  if (text == "full_shard" || text == "fsdp2") layout.zero = 3;
  if (text.starts_with("fsdp ") && text != "fsdp 0") layout.zero = 3;
  if (text.size() == 1 && std::isdigit(static_cast<unsigned char>(text[0])))
    layout.zero = std::min(3, text[0] - '0');
}

/// Blocks and width of a GPT of a size that nobody states: a width of 128 for each block, as GPT-3
/// and its relatives have, in multiples of the stages.
std::string inferred_shape(double parameters, const Layout& layout) {
  constexpr double kAspect = 128;
  const double width = std::cbrt(parameters * kAspect / 12);
  const double hidden = std::max(1., std::round(width / kAspect / 8)) * kAspect * 8;
  const auto stages = static_cast<double>(layout.pipeline);
  const double layers =
      std::max(1., std::round(parameters / (12 * hidden * hidden) / stages)) * stages;
  return "transformer:layers=" + to_text(layers) + ",hidden=" + to_text(hidden) +
         ",heads=" + to_text(hidden / kAspect);
}

/// The usual vocabulary that is nearest to what the stated parameters leave for its table: GPT-2's,
/// padded, or BLOOM's.
void add_vocabulary(const Row& row, std::string& settings) {
  constexpr double kUsual[] = {51'200, 250'880};
  constexpr double kBillions = 1e6;  // Smaller numbers of parameters are in 10^9.
  const double layers = *row.number("layers"), hidden = *row.number("hidden");
  const double blocks = layers * (12 * hidden * hidden + 13 * hidden);
  const double stated = *row.number("parameters");
  const double left = ((stated < kBillions ? stated * kGiga : stated) - blocks) / hidden;
  const double nearest =
      std::abs(left - kUsual[0]) < std::abs(left - kUsual[1]) ? kUsual[0] : kUsual[1];
  settings += ",vocabulary=" + to_text(nearest);
}

/// A model that was cut to fewer layers keeps the share of those without experts, and one of them.
void add_dense_layers(const std::string& preset, const Row& row, std::string& settings) {
  const auto whole = find_workload(preset);
  const nlohmann::json described = write_json(*whole);
  const double dense = described.value("dense_layers", 0.);
  if (dense <= 1) return;
  const double share = dense / static_cast<double>(whole->layer_count());
  settings += ",dense_layers=" + to_text(std::max(1., std::round(share * *row.number("layers"))));
}

/// Of presets that share a name, the first whose blocks divide by the stages, with embedding and
/// head counted or not.
std::string preset_of(const std::string& model, const Layout& layout) {
  const auto presets = presets_recorded_as(model);
  for (const std::string_view preset : presets) {
    const std::int64_t layers = find_workload(preset)->layer_count();
    if (layers % layout.pipeline == 0 || (layers + 2) % layout.pipeline == 0)
      return std::string(preset);
  }
  return presets.empty() ? "" : std::string(presets.front());
}

std::string workload_text(const Row& row, const RowDefaults& defaults, const Layout& layout) {
  const std::string model = row.text("model");
  const std::string preset = preset_of(model, layout);
  const bool has_shape = row.has("layers") && row.has("hidden") && row.has("heads");
  std::string text;
  if (!preset.empty() && !has_shape)
    text = preset;
  else if (has_shape || !defaults.workload.empty())
    text = defaults.workload.empty() ? "transformer" : defaults.workload;
  else if (model.starts_with("GPT") && row.has("parameters"))
    text = inferred_shape(*row.number("parameters"), layout);
  else if (model.starts_with("Llama-3.1-8B"))
    text = "llama3-8b";
  else
    throw Error("model: must be one that is known or have layers, hidden and heads, got '" + model +
                "'");
  std::string settings;
  const auto add = [&](std::string_view column, std::string_view setting) {
    if (const auto value = row.number(column))
      settings += (settings.empty() ? "" : ",") + std::string(setting) + "=" + to_text(*value);
  };
  if (text.find(':') == std::string::npos || has_shape) {
    add("layers", "layers");
    if (has_shape) add("hidden", "hidden"), add("heads", "heads");
  }
  add("sequence", "sequence");
  if (const auto length = row.number("sequence");
      length && (text.starts_with("mpt") || preset.empty()))
    settings += ",positions=" + to_text(*length);
  if (has_shape && row.has("parameters")) add_vocabulary(row, settings);
  if (!preset.empty() && !has_shape && row.has("layers")) add_dense_layers(text, row, settings);
  if (settings.empty()) return text;
  return text + (text.find(':') == std::string::npos ? ":" : ",") + settings;
}

/// A table that states neither replicas nor micro-batches, but how many micro-batches are
/// accumulated: one sample each, and devices beyond those of the replicas share sequences.
void share_devices(const Row& row, std::int64_t gpus, std::int64_t accumulation, Layout& layout) {
  if (row.has("dp") || row.has("micro_batch") || row.has("cp") || !row.has("accumulation")) return;
  std::int64_t batch = 0;
  row.read("global_batch", batch);
  const std::int64_t replicas = batch / std::max<std::int64_t>(1, accumulation);
  const std::int64_t model = layout.tensor * layout.pipeline;
  if (replicas < 1 || replicas >= gpus || gpus % (replicas * model) != 0) return;
  layout.data = replicas, layout.context = gpus / (replicas * model);
}

void read_layout(const Row& row, Layout& layout) {
  row.read("tp", layout.tensor), row.read("pp", layout.pipeline);
  row.read("cp", layout.context), row.read("ep", layout.expert);
  row.read("virtual_stages", layout.virtual_stages);
  layout.virtual_stages = std::max<std::int64_t>(1, layout.virtual_stages);
  row.read("micro_batch", layout.micro_batch);
  std::int64_t gpus = 0;
  row.read("gpus", gpus);
  const std::int64_t others = layout.tensor * layout.pipeline * layout.context;
  if (row.has("dp"))
    row.read("dp", layout.data);
  else if (gpus > 0)
    layout.data = std::max<std::int64_t>(1, gpus / others);
  if (layout.pipeline == 1 && gpus > 0 && others * layout.data < gpus &&
      gpus % (layout.tensor * layout.data) == 0 && !row.has("pp"))
    layout.pipeline = gpus / (layout.tensor * layout.data);
  std::int64_t accumulation = 1;
  row.read("accumulation", accumulation);
  share_devices(row, gpus, accumulation, layout);
  layout.global_batch = layout.data * layout.micro_batch * std::max<std::int64_t>(1, accumulation);
  row.read("global_batch", layout.global_batch);
  if (!row.has("global_batch") && !row.has("accumulation"))
    throw Error("global_batch: must be stated, or how many micro-batches there are");
  if (!row.has("micro_batch") && row.has("accumulation") && accumulation > 0)
    layout.micro_batch =
        std::max<std::int64_t>(1, layout.global_batch / layout.data / accumulation);
  // Published batches are rounded; so many whole micro-batches ran.
  const std::int64_t step = layout.data * layout.micro_batch;
  layout.global_batch = std::max(step, (layout.global_batch + step / 2) / step * step);
  if (layout.virtual_stages > 1 && layout.micro_batches() % layout.pipeline != 0)
    layout.virtual_stages = 1;
  // A pipeline of one micro-batch: the column is the batch of a replica, cut into samples.
  if (layout.pipeline > 1 && layout.micro_batches() == 1) layout.micro_batch = 1;
  layout.precision = precision_of(row, layout.precision);
  read_recompute(row, layout);
  read_variant(row, layout);
  read_zero(row, layout);
}

class Reader {
 public:
  Reader(const RowDefaults& defaults, const std::vector<std::string>& heading)
      : defaults_(defaults) {
    for (const std::string& cell : heading) {
      const std::string letters = letters_and_digits(cell);
      std::string name;
      for (const Column& column : columns()) {
        if (std::ranges::find(column.names, letters) != column.names.end()) name = column.name;
      }
      heading_.push_back(std::move(name));
    }
    if (std::ranges::find(heading_, "time") == heading_.end())
      throw Error("must have a column iteration_ms, step_ms or iteration time (ms)");
  }

  MeasuredRow read(std::vector<std::string> cells) {
    const Row row(heading_, std::move(cells));
    MeasuredRow read;
    Layout& layout = read.step.layout;
    layout = defaults_.layout;
    read_layout(row, layout);
    read.step.platform = platform_of(row);
    if (layout.precision == "bf16" && read.step.platform.device.bf16.flops_per_second <= 0)
      layout.precision = "fp16";
    const std::string text = workload_text(row, defaults_, layout);
    read.step.workload = find_workload(text);
    const std::int64_t layers = read.step.workload->layer_count();
    if (layers % layout.pipeline != 0 && (layers + 2) % layout.pipeline == 0)
      layout.embedding_is_layer = true;
    read.step.release = release_of(row.text("variant"));
    read.step.name = name_of(text, layout);
    read.group = text + " on " + row.text("gpu") + " x " + std::to_string(layout.devices());
    read.out_of_memory = row.lower("time").find(kOutOfMemory) != std::string::npos;
    if (!read.out_of_memory) {
      const auto time = row.number("time");
      if (!time || *time <= 0) throw Error("has no time");
      read.step.us = *time * 1e3;
    }
    if (const auto memory = row.number("memory")) read.memory_bytes = *memory * kGibi;
    // What does not divide is refused here.
    StepPricer().price(*read.step.workload, layout, read.step.platform, Constants{});
    return read;
  }

 private:
  static std::string name_of(const std::string& text, const Layout& layout) {
    const auto one = [](const char* name, std::int64_t value) {
      return value > 1 ? std::string(" ") + name + std::to_string(value) : std::string();
    };
    return text + one("tp", layout.tensor) + one("pp", layout.pipeline) + one("dp", layout.data) +
           one("cp", layout.context) + one("ep", layout.expert) + one("vp", layout.virtual_stages) +
           " mb" + std::to_string(layout.micro_batch) + " gb" + std::to_string(layout.global_batch);
  }

  Platform platform_of(const Row& row) {
    const std::string recorded = row.has("gpu") ? machine_of(row.text("gpu")) : "";
    const std::string machine = defaults_.machine.empty() ? recorded : defaults_.machine;
    if (machine.empty())
      throw Error("gpu: must be one that is known, or --machine be given, got '" + row.text("gpu") +
                  "'");
    if (!platforms_.contains(machine)) platforms_.emplace(machine, find_platform(machine));
    Platform platform = platforms_.at(machine);
    const auto gpus = row.number("gpus"), nodes = row.number("nodes");
    if (gpus && nodes && *nodes >= 1) {
      const std::int64_t per_node = std::llround(*gpus / *nodes);
      if (per_node >= 1 && per_node<platform.per_node&& * nodes> 1) platform.per_node = per_node;
    }
    return platform;
  }

  const RowDefaults& defaults_;
  std::vector<std::string> heading_;
  std::map<std::string, Platform> platforms_;
};

/// "column=text" filters by the names of the heading itself.
bool passes(const std::vector<std::string>& heading, const std::vector<std::string>& cells,
            const std::vector<std::string>& only) {
  for (const std::string& one : only) {
    const std::size_t equal = one.find('=');
    if (equal == std::string::npos) throw Error("--only: must be COLUMN=TEXT, got '" + one + "'");
    const auto found = std::ranges::find(heading, one.substr(0, equal));
    if (found == heading.end())
      throw Error("--only: there is no column '" + one.substr(0, equal) + "'" +
                  did_you_mean(one.substr(0, equal), heading));
    const auto place = static_cast<std::size_t>(found - heading.begin());
    if (place >= cells.size() || cells[place].find(one.substr(equal + 1)) == std::string::npos)
      return false;
  }
  return true;
}

}  // namespace

std::vector<MeasuredRow> read_measured_rows(const std::string& path, const RowDefaults& defaults,
                                            Notes& notes) {
  std::ifstream file(path);
  if (!file) throw Error(path + ": cannot be read");
  std::string line;
  std::getline(file, line);
  if (line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
  const std::vector<std::string> heading = cells_of(line);
  std::vector<MeasuredRow> rows;
  within(path, [&] {
    Reader reader(defaults, heading);
    for (std::size_t number = 1; std::getline(file, line); ++number) {
      std::vector<std::string> cells = cells_of(line);
      if (!passes(heading, cells, defaults.only)) continue;
      try {
        rows.push_back(reader.read(std::move(cells)));
        rows.back().number = number;
      } catch (const Error& error) {
        notes.add(Severity::warning, kLeftOut,
                  "row " + std::to_string(number) + ": " + error.what());
      }
    }
    if (rows.empty()) throw Error("has no row that can be priced");
  });
  return rows;
}

}  // namespace foretrace
