#include "serve/price.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"
#include "serve/csv_table.h"

namespace foretrace::serve {
namespace {

constexpr double kNano = 1e9, kMicroNs = 1e3;

/// A layer outside a graph launches this many kernels, each of which takes the host this long:
/// counted in recordings of SGLang and vLLM; recalled.
constexpr double kLayerKernels = 15, kLaunchNs = 4000;

double& part(StepTime& time, Bound bound) { return time.parts[static_cast<std::size_t>(bound)]; }

/// REQUIRES: `at` is not outside of the points.
double interpolated(const std::vector<std::pair<double, double>>& points, double at) {
  if (points.size() == 1) return points.front().second;
  std::size_t next = 1;
  while (next + 1 < points.size() && points[next].first < at) ++next;
  const auto& [x0, y0] = points[next - 1];
  const auto& [x1, y1] = points[next];
  return y0 + (y1 - y0) * (at - x0) / (x1 - x0);
}

/// A size and the nearest one in a table.
struct Nearest {
  double asked, inside;

  Nearest(double size, double least, double most)
      : asked(size), inside(std::clamp(size, least, most)) {}
  bool is_outside() const { return asked != inside; }
};

StepWork decode_work(double batch, double context) {
  return {.sequences = batch,
          .context = batch * context,
          .sampled = batch,
          .rows = batch,
          .in_graph = true};
}

/// The prompts of a step, each cut to a share of its tokens.
StepWork prompt_work(const StepWork& work, double share) {
  return {.prompt_tokens = work.prompt_tokens * share,
          .prompt_pairs = work.prompt_pairs * share * share,
          .prompt_context = work.prompt_context * share,
          .sampled = 1,
          .rows = work.prompt_tokens * share,
          .in_graph = true};
}

struct Mean {
  double sum = 0, count = 0;

  void add(double value) { sum += value, ++count; }
};

std::vector<std::pair<double, double>> points_of(const std::map<double, Mean>& means) {
  std::vector<std::pair<double, double>> points;
  for (const auto& [size, mean] : means) points.emplace_back(size, mean.sum / mean.count);
  return points;
}

}  // namespace

const std::vector<ServeConstantEntry>& serve_constants() {
  static const std::vector<ServeConstantEntry> entries = {
#define CONSTANT(name, value, spread, unit, help) \
  {#name, unit, help, value, spread, &ServeConstants::name},
#include "serve/constants.def"
#undef CONSTANT
  };
  return entries;
}

EngineCosts costs_of(const ServeConstants& c, std::string_view scheduler,
                     std::string_view version) {
  if (scheduler == "sglang")
    return {c.sglang_step,   c.sglang_sequence, c.sglang_layer,
            c.sglang_prompt, c.sglang_each,     c.sglang_entry};
  if (scheduler == "trtllm")
    return {c.trtllm_step,
            c.trtllm_sequence,
            c.trtllm_layer,
            c.trtllm_prompt,
            c.trtllm_each,
            version.starts_with("0.") || version.starts_with("1.0") ? c.trtllm_old_entry
                                                                    : c.trtllm_entry};
  return {c.vllm_step, c.vllm_sequence, c.vllm_layer, c.vllm_prompt, c.vllm_each, c.vllm_entry};
}

DevicePrice::DevicePrice(Model model, Precision precision, Placement placement,
                         const Platform& platform, const std::string& scheduler,
                         const ServeConstants& constants)
    : model_(std::move(model)),
      precision_(std::move(precision)),
      placement_(placement),
      memory_(platform.device.memory_bandwidth.bytes_per_second / kNano),
      costs_(costs_of(constants, scheduler)),
      constants_(constants) {
  for (std::size_t i = 0; i < rates_.size(); ++i) {
    const auto kind = static_cast<OperationKind>(i);
    const bool is_experts = kind == OperationKind::experts;
    rates_[i] = rate_of(platform.device, kind, is_experts ? precision_.experts : precision_.dense);
    half_rates_[i] = rate_of(platform.device, kind, Arithmetic::half);
  }
  const bool is_within = placement.tensor * placement.data <= platform.per_node;
  const Bandwidth link = is_within ? platform.within : platform.across;
  link_ = link.bytes_per_second * constants.exchange_share / kNano;
}

void DevicePrice::add(const Operation& operation, bool is_prompt, StepTime& time) const {
  const auto kind = static_cast<std::size_t>(operation.kind);
  const OperationRate& rate =
      (operation.arithmetic == Arithmetic::half ? half_rates_ : rates_)[kind];
  double flops = rate.flops_per_second / kNano, bytes = rate.bytes_per_second / kNano;
  double start = constants_.start, scale = 1;
  if (operation.kind == OperationKind::product) scale = constants_.weights;
  if (operation.kind == OperationKind::experts) scale = constants_.experts;
  if (operation.kind == OperationKind::decode || operation.kind == OperationKind::attention)
    scale = constants_.cache, start = constants_.decode_start;
  if (operation.kind == OperationKind::attention) bytes = memory_;
  if (is_prompt)
    flops *=
        operation.kind == OperationKind::experts ? constants_.expert_prompt : costs_.prompt_share;
  const double arithmetic = flops > 0 ? operation.flops / flops : 0;
  const double read = operation.weights / (bytes * scale),
               cache = operation.cache / (bytes * scale);
  const double memory = read + cache + operation.moved / bytes;
  part(time, Bound::host) += operation.count * start * static_cast<double>(rate.start.count());
  if (arithmetic >= memory) {
    part(time, Bound::arithmetic) += operation.count * arithmetic;
  } else {
    part(time, Bound::cache) += operation.count * cache;
    part(time, Bound::weights) += operation.count * (memory - cache);
  }
}

double DevicePrice::exchange_ns(double bytes) const {
  const double ranks = static_cast<double>(placement_.tensor);
  return constants_.exchange * kMicroNs + 2 * (ranks - 1) / ranks * bytes / link_;
}

StepTime DevicePrice::of(const StepWork& work) const {
  const StepOperations step = operations_of(model_, precision_, placement_, work);
  StepTime time;
  const bool is_prompt = work.prompt_tokens > work.sequences;
  for (const Operation& operation : step.operations) add(operation, is_prompt, time);
  if (step.exchanges > 0)
    part(time, Bound::exchange) += step.exchanges * exchange_ns(step.exchanged);
  if (step.dispatched > 0)
    part(time, Bound::exchange) +=
        step.dispatched / link_ + 2 * model_.layers * constants_.exchange * kMicroNs;
  double& host = part(time, Bound::host);
  host += model_.layers * costs_.layer_us * kMicroNs;
  if (model_.experts > 0)
    host += (model_.layers - model_.dense_layers) * kMicroNs *
            (constants_.expert_layer + (is_prompt ? constants_.expert_prompt_layer : 0));
  double device = 0;
  for (const double ns : time.parts) device += ns;
  // Without a graph the host launches each kernel.
  if (!work.in_graph) host += std::max(0., model_.layers * kLayerKernels * kLaunchNs - device);
  host += costs_.step_us * kMicroNs +
          costs_.sequence_us * kMicroNs * (work.sequences + work.sampled) / 2;
  for (const double ns : time.parts) time.ns += ns;
  return time;
}

TablePrice::TablePrice(const std::string& path, std::unique_ptr<StepPrice> outside)
    : outside_(std::move(outside)) {
  std::map<double, std::map<double, Mean>> decode;
  std::map<double, Mean> prompts;
  each_csv_row(path, [&](const CsvRow& row) {
    const double batch = row.number("batch", 1, 1e9), context = row.number("context", 1, 1e9);
    const double ns = row.number("time_us", 1e-3, 1e12) * kMicroNs;
    const std::string& kind = row.cell("kind");
    if (kind == "decode")
      decode[batch][context].add(ns);
    else if (kind == "prefill")
      prompts[batch * context].add(ns);
    else
      throw Error(fmt::format("kind: must be decode or prefill, got \"{}\"", kind));
  });
  for (const auto& [size, means] : decode) decode_.push_back({size, points_of(means)});
  prompts_ = points_of(prompts);
  if (decode_.empty() || prompts_.empty())
    throw Error(path + ": must have rows of decode and of prefill");
}

double TablePrice::decode_ns(const Column& column, double context, bool& is_outside) const {
  const Nearest place(context, column.points.front().first, column.points.back().first);
  const double ns = interpolated(column.points, place.inside);
  if (!place.is_outside()) return ns;
  is_outside = true;
  return ns * outside_->of(decode_work(column.key, context)).ns /
         outside_->of(decode_work(column.key, place.inside)).ns;
}

double TablePrice::decode_ns(double batch, double context, bool& is_outside) const {
  const Nearest place(batch, decode_.front().key, decode_.back().key);
  const auto above = std::ranges::lower_bound(decode_, place.inside, {}, &Column::key);
  const auto below = above->key > place.inside ? above - 1 : above;
  Points over_batch = {{below->key, decode_ns(*below, context, is_outside)}};
  if (above != below) over_batch.emplace_back(above->key, decode_ns(*above, context, is_outside));
  const double ns = interpolated(over_batch, place.inside);
  if (!place.is_outside()) return ns;
  is_outside = true;
  return ns * outside_->of(decode_work(batch, context)).ns /
         outside_->of(decode_work(place.inside, context)).ns;
}

double TablePrice::prompt_ns(const StepWork& work, bool& is_outside) const {
  const Nearest place(work.prompt_tokens, prompts_.front().first, prompts_.back().first);
  const double ns = interpolated(prompts_, place.inside);
  if (!place.is_outside()) return ns;
  is_outside = true;
  return ns * outside_->of(prompt_work(work, 1)).ns /
         outside_->of(prompt_work(work, place.inside / place.asked)).ns;
}

StepTime TablePrice::of(const StepWork& work) const {
  StepTime time;
  if (work.sequences > 0)
    part(time, Bound::cache) = decode_ns(work.in_graph ? work.rows : work.sequences,
                                         work.context / work.sequences, time.is_outside);
  if (work.prompt_tokens > 0) part(time, Bound::arithmetic) = prompt_ns(work, time.is_outside);
  time.ns = part(time, Bound::cache) + part(time, Bound::arithmetic);
  return time;
}

}  // namespace foretrace::serve
