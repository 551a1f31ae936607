#include "transform/program/serving_graph.h"

#include <algorithm>
#include <fmt/core.h>
#include <string>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "transform/edit/edit.h"

namespace foretrace {

ServingGraph::ServingGraph(const Graph& graph) : graph_(graph) {
  for (const Step& step : graph.steps()) {
    const auto named = serving_step(step.name);
    serves_ = serves_ || named.has_value();
    steps_.push_back(named);
  }
}

const ServingStep* ServingGraph::step_of(const Task& task) const {
  const auto number = static_cast<std::size_t>(task.step);
  return task.step >= 0 && number < steps_.size() && steps_[number] ? &*steps_[number] : nullptr;
}

const ServingStep* ServingGraph::decoding(const Task& task) const {
  const ServingStep* const step = step_of(task);
  return step != nullptr && step->prompts == 0 && step->sequences > 0 ? step : nullptr;
}

bool ServingGraph::reads_weights(const Task& task, const OperationRate& rate) const {
  const ServingStep* const step = decoding(task);
  if (step == nullptr || task.flops > 0 || rate.bytes_per_second <= 0) return false;
  const auto tokens = static_cast<double>(std::max(step->tokens(), step->sequences));
  return tokens < rate.flops_per_second / rate.bytes_per_second;
}

bool ServingGraph::is_attention(const Task& task) const {
  const std::string_view name = graph_.names()[task.name];
  return task.kind == TaskKind::kernel && !contains(name, "_and_cache") &&
         contains_any(name, {"attention", "attn", "fmha", "flash", "PagedKVCache", "mla_"});
}

bool ServingGraph::runs_experts(const Task& task) const {
  return task.kind == TaskKind::kernel &&
         contains_any(graph_.names()[task.name], {"moe", "MoE", "expert", "matmul_ogs"});
}

bool ServingGraph::has_narrow_cache() const {
  for (std::uint32_t i = 0; i < graph_.task_count(); ++i) {
    const Task& task = graph_.task(TaskId{i});
    if (task.kind != TaskKind::kernel) continue;
    const std::string_view name = graph_.names()[task.name];
    if (contains_any(name, {"Fp8KVCacheDataType)1", "Fp8KVCacheDataType)2"})) return true;
    if (is_attention(task) && contains_any(name, {"fp8", "e4m3", "e5m2"})) return true;
  }
  return false;
}

std::vector<TaskId> ServingGraph::decode_attention() const {
  std::vector<TaskId> found;
  for (std::uint32_t i = 0; i < graph_.task_count(); ++i) {
    const TaskId id{i};
    if (!graph_.removed(id) && decoding(graph_.task(id)) && is_attention(graph_.task(id)))
      found.push_back(id);
  }
  if (found.empty())
    throw Error(serves_ ? "no step only decodes and has a kernel known as attention"
                        : std::string(kNoServingSteps));
  return found;
}

Applicability ServingGraph::applies_to_decode_attention() const {
  return applies_to_decoding([&](const Task& task) { return is_attention(task); }, "attention",
                             "where arithmetic and the cache cannot be told apart");
}

Applicability ServingGraph::applies_to_decoding(const std::function<bool(const Task&)>& counts,
                                                std::string_view name,
                                                std::string_view why_prompts) const {
  if (!serves_) return {.share = 0, .why_not = std::string(kNoServingSteps)};
  Nanoseconds all{0}, decoded{0}, unnamed{0};
  for (std::uint32_t i = 0; i < graph_.task_count(); ++i) {
    const Task& task = graph_.task(TaskId{i});
    if (!counts(task)) continue;
    all += task.duration;
    if (decoding(task)) decoded += task.duration;
    if (step_of(task) == nullptr) unnamed += task.duration;
  }
  if (all == 0ns) return {.share = 0, .why_not = fmt::format("no kernel is known as {}", name)};
  std::string why_not;
  if (const Nanoseconds mixed = all - decoded - unnamed; mixed > 0ns)
    why_not = fmt::format("{} of the time of {} is in steps that compute prompts as well, {}",
                          to_share(ratio(mixed, all)), name, why_prompts);
  if (unnamed > 0ns) {
    why_not += fmt::format("{}{} of the time of {} is outside the steps that the engine names",
                           why_not.empty() ? "" : "; ", to_share(ratio(unnamed, all)), name);
  }
  return {.share = ratio(decoded, all), .why_not = why_not};
}

Applicability ServingGraph::applies_beyond_decoding(std::string_view instead) const {
  if (!serves_) return {};
  Nanoseconds all{0}, decoded{0};
  for (std::uint32_t i = 0; i < graph_.task_count(); ++i) {
    const Task& task = graph_.task(TaskId{i});
    if (!runs_on_device(task.kind) || graph_.removed(TaskId{i})) continue;
    all += task.duration;
    if (decoding(task)) decoded += task.duration;
  }
  if (decoded == 0ns) return {};
  const double others = 1 - ratio(decoded, all);
  return {.share = others < 0.5 ? 0 : others,
          .why_not = fmt::format("{} of the time of device work is in steps that decode, whose "
                                 "weights and caches it does not know; {} does",
                                 to_share(ratio(decoded, all)), instead)};
}

Nanoseconds with_cache_bytes(Nanoseconds recorded, const DeviceModel& device, double factor) {
  const OperationRate rate = rate_of(device, OperationKind::decode, Arithmetic::half);
  return time_at(recorded, rate, rate, false, factor);
}

}  // namespace foretrace
