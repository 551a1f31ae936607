#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "question/generate/table_row.h"

namespace foretrace {
namespace {

std::string precision_of(const TableRow& row, const std::string& usual) {
  const std::string text = row.lower("precision");
  for (const auto& [word, precision] : std::initializer_list<std::pair<const char*, const char*>>{
           {"fp4", "fp4"}, {"fp8", "fp8"}, {"float8", "fp8"}, {"bf16", "bf16"}, {"fp16", "fp16"}}) {
    if (text.find(word) != std::string::npos) return precision;
  }
  return usual;
}

void read_recompute(const TableRow& row, Layout& layout) {
  const std::string text = row.lower("recompute");
  if (text.starts_with("true") || text.starts_with("full")) layout.recompute = "full";
  // The host keeps the inputs from which all is recomputed.
  if (text.starts_with("offload")) layout.recompute = "full", layout.host_checkpoints = true;
  if (text.starts_with("false")) layout.recompute = "none";
  if (text.find("selective") != std::string::npos) layout.recompute = "selective";
  // torchtitan's selection repeats every second matrix product, about a half of each layer.
  if (layout.recompute == "selective" && layout.framework == "torchtitan")
    layout.recompute = "full", layout.recompute_share = .5;
  if (text.find("sequence parallel") != std::string::npos) layout.sequence_parallel = true;
}

/// Reads settings from the name of a variant. If there is no column for ZeRO, " zero" in the name
/// means that everything is sharded and checkpoints are on the host, as DeepSpeed's examples for
/// its third stage have it (recalled).
void read_variant(const TableRow& row, Layout& layout) {
  const std::string variant = row.lower("variant"), model = row.lower("model");
  if (!row.has("zero") && variant.find(" zero") != std::string::npos)
    layout.zero = 3, layout.host_checkpoints = true;
  for (const char* kernel : {"flash_attention_2", "flash_attention_3"})
    if (variant.find(kernel) != std::string::npos) layout.attention_kernel = kernel;
  // prime-rl's trainer for reinforcement learning has such a loss, its supervised one has not.
  if (layout.framework == "fsdp" && variant.starts_with("rl ")) layout.fused_loss = true;
  // torchtitan's tables name what was switched on: "FSDP", "FSDP+compile".
  if (layout.framework == "torchtitan" && variant.ends_with(" fsdp")) layout.pointwise = "eager";
  if (variant.find("async tp") != std::string::npos) layout.overlaps_exchanges = true;
  if (variant.find("offload") != std::string::npos) layout.host_optimizer = true;
  layout.lora = variant.find("lora") != std::string::npos || model.ends_with("lora");
}

void read_zero(const TableRow& row, Layout& layout) {
  const std::string text = row.lower("zero");
  if (text.empty()) return;
  if (text == "y") layout.zero = 1;
  if (text == "n") layout.zero = 0;
  if (text == "shard_grad_op") layout.zero = 2;
  if (text == "full_shard" || text == "fsdp2") layout.zero = 3;
  // FSDP2 is what torchtitan uses, whose tensor-parallel ranks share the sequence.
  if (text == "fsdp2") layout.sequence_parallel = true;
  // With stages, it keeps weights gathered between the passes.
  if (text == "fsdp2" && layout.pipeline > 1) layout.zero = 2;
  if (text.starts_with("fsdp ") && text != "fsdp 0") layout.zero = 3;
  if (text.size() == 1 && std::isdigit(static_cast<unsigned char>(text[0])))
    layout.zero = std::min(3, text[0] - '0');
}

/// Whether a row of several devices says nothing of how they share the model, or how large a
/// micro-batch is.
bool leaves_layout_open(const TableRow& row, std::int64_t gpus) {
  const auto has_none = [&](std::initializer_list<const char*> names) {
    return std::ranges::none_of(names, [&](const char* name) { return row.has(name); });
  };
  return gpus > 1 && (has_none({"micro_batch", "accumulation"}) ||
                      has_none({"tp", "pp", "dp", "zero", "micro_batch", "accumulation"}));
}

/// Fills in layouts of a table that states how many micro-batches are accumulated, but neither
/// replicas nor micro-batches: a micro-batch is one sample, and devices beyond the replicas share
/// sequences. Returns whether that was guessed.
bool share_devices(const TableRow& row, std::int64_t gpus, std::int64_t accumulation,
                   Layout& layout) {
  if (row.has("dp") || row.has("micro_batch") || row.has("cp") || !row.has("accumulation"))
    return false;
  std::int64_t batch = 0;
  row.read("global_batch", batch);
  const std::int64_t replicas = batch / std::max<std::int64_t>(1, accumulation);
  const std::int64_t model = layout.tensor * layout.pipeline;
  if (replicas < 1 || replicas >= gpus || gpus % (replicas * model) != 0) return false;
  layout.data = replicas, layout.context = gpus / (replicas * model);
  return layout.context > 1;
}

/// Throws Error if a layout has not the devices that its row states.
void check_devices(const TableRow& row, std::int64_t gpus, const Layout& layout) {
  const bool states_all = row.has("dp") && row.has("pp");
  if (gpus > 0 && (layout.devices() > gpus || (states_all && layout.devices() != gpus)))
    throw Error(fmt::format("gpus: must be tp x pp x dp x cp, {}, got {}", layout.devices(), gpus));
}

}  // namespace

bool read_layout(const TableRow& row, Layout& layout) {
  row.read("tp", layout.tensor), row.read("pp", layout.pipeline);
  row.read("cp", layout.context), row.read("ep", layout.expert);
  row.read("virtual_stages", layout.virtual_stages);
  layout.virtual_stages = std::max<std::int64_t>(1, layout.virtual_stages);
  constexpr std::int64_t kUsualChunks = 2;
  if (!row.has("virtual_stages") && row.lower("variant").find("interleaved") != std::string::npos)
    layout.virtual_stages = kUsualChunks;
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
  const bool is_guessed =
      share_devices(row, gpus, accumulation, layout) || leaves_layout_open(row, gpus);
  check_devices(row, gpus, layout);
  layout.global_batch = layout.data * layout.micro_batch * std::max<std::int64_t>(1, accumulation);
  row.read("global_batch", layout.global_batch);
  if (!row.has("global_batch") && !row.has("accumulation"))
    throw Error("global_batch: must be stated, or how many micro-batches there are");
  // Samples may be packed, several in a row of a micro-batch: how often batches are accumulated
  // says how many samples one has. Micro-batches of a pipeline are not always counted there.
  const bool counts = layout.pipeline == 1 || !row.has("micro_batch");
  if (counts && row.has("accumulation") && accumulation > 0)
    layout.micro_batch =
        std::max<std::int64_t>(1, layout.global_batch / layout.data / accumulation);
  // Published batches are rounded; a whole number of micro-batches ran.
  const std::int64_t step = layout.data * layout.micro_batch;
  layout.global_batch = std::max(step, (layout.global_batch + step / 2) / step * step);
  // If a pipeline would have one micro-batch, the column is the batch of a replica, which
  // torchtitan cuts into as many micro-batches as there are stages.
  if (layout.pipeline > 1 && layout.micro_batches() == 1)
    layout.micro_batch =
        layout.micro_batch % layout.pipeline == 0 ? layout.micro_batch / layout.pipeline : 1;
  if (layout.virtual_stages > 1 && layout.micro_batches() % layout.pipeline != 0)
    layout.virtual_stages = 1;
  layout.precision = precision_of(row, layout.precision);
  read_recompute(row, layout);
  read_variant(row, layout);
  read_zero(row, layout);
  return is_guessed;
}

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

}  // namespace foretrace
