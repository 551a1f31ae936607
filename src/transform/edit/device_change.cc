#include "transform/edit/device_change.h"

#include <fmt/core.h>
#include <map>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// A kernel whose operations explain less of its time waits for memory, or fills little of the
/// device. Chosen.
constexpr double kExplained = 0.5;

}  // namespace

const KernelClass& KernelClasses::of(NameId name) {
  const auto i = static_cast<std::size_t>(name);
  if (i >= known_.size()) {
    known_.resize(graph_.names().size(), 0);
    classes_.resize(graph_.names().size());
  }
  if (known_[i] == 0) {
    classes_[i] = classify_kernel(graph_.names()[name]);
    known_[i] = 1;
  }
  return classes_[i];
}

JobPrecision precision_of(const Graph& graph) {
  KernelClasses classes(graph);
  JobPrecision precision;
  Nanoseconds half{0}, arithmetic{0}, twice{0}, all{0};
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel || graph.removed(TaskId{i})) continue;
    precision.has_kernels = true;
    const KernelClass& kernel = classes.of(task.name);
    precision.of_framework |=
        kernel.origin != Origin::unknown || kernel.bound == Boundness::compute;
    if (kernel.bound == Boundness::latency) continue;
    all += task.duration;
    if (kernel.double_precision) twice += task.duration;
    if (kernel.bound != Boundness::compute) continue;
    arithmetic += task.duration;
    if (kernel.half_precision) half += task.duration;
  }
  precision.half = ratio(half, arithmetic);
  precision.twice = ratio(twice, all);
  return precision;
}

const DeviceModel* recorded_device(const Graph& graph) {
  for (const std::string& name : graph.device_names()) {
    if (!name.empty()) return device_recorded_as(name);
  }
  return nullptr;
}

OperationKind operation_of(const KernelClass& kernel, std::string_view name) {
  if (kernel.bound != Boundness::compute) return OperationKind::stream;
  return contains_any(name, {"attention", "attn", "flash", "fmha", "mha_"})
             ? OperationKind::attention
             : OperationKind::product;
}

Arithmetic arithmetic_of(const KernelClass& kernel, const DeviceModel& device) {
  if (kernel.double_precision) return Arithmetic::fp64;
  if (kernel.half_precision) return Arithmetic::half;
  return kernel.tensor_cores && device.tf32.flops_per_second > 0 ? Arithmetic::tf32
                                                                 : Arithmetic::fp32;
}

bool limited_by_arithmetic(const Task& task, const OperationRate& rate) {
  if (task.flops <= 0 || rate.flops_per_second <= 0) return true;
  const double seconds = static_cast<double>((task.duration - rate.start).count()) * 1e-9;
  return task.flops / rate.flops_per_second >= kExplained * seconds;
}

void name_narrow(Graph& graph, const std::vector<TaskId>& kernels, std::string_view type) {
  std::map<NameId, NameId> narrow;
  for (const TaskId id : kernels) {
    const auto [found, added] = narrow.try_emplace(graph.task(id).name);
    if (added) found->second = graph.names().intern(fmt::format("{} ({})", graph.name(id), type));
    graph.task(id).name = found->second;
  }
}

DeviceModel device_for(const Graph& graph, const Context& context, std::string_view setting,
                       const std::string& name) {
  if (!name.empty()) return within(setting, [&] { return find_device(name); });
  if (context.machine != nullptr) return *context.machine;
  for (const std::string& recorded : graph.device_names()) {
    if (recorded.empty()) continue;
    if (const DeviceModel* known = device_recorded_as(recorded)) return *known;
    throw Error(fmt::format(
        "{}: must be given, as the trace was recorded on \"{}\", which is not a known device",
        setting, recorded));
  }
  throw Error(fmt::format(
      "{}: must be given, as the trace does not say what device it was recorded on", setting));
}

Bandwidth memory_rate(const Graph& graph, const Context& context, const std::string& wanted_for) {
  if (context.machine != nullptr) return context.machine->memory_bandwidth;
  for (const std::string& name : graph.device_names()) {
    if (const DeviceModel* const device = device_recorded_as(name)) return device->memory_bandwidth;
  }
  throw Error(wanted_for +
              ": the trace does not say which device it was recorded on; give --machine");
}

}  // namespace foretrace
