#include "transform/edit/device_change.h"

#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {

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

double share_in_half_precision(const Graph& graph) {
  KernelClasses classes(graph);
  double half = 0, all = 0;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel || graph.removed(TaskId{i})) continue;
    const KernelClass& kernel = classes.of(task.name);
    if (kernel.bound != Boundness::compute) continue;
    const auto time = static_cast<double>(task.duration.count());
    all += time;
    if (kernel.half_precision) half += time;
  }
  return all <= 0 ? 0 : half / all;
}

Throughput peak_of(const DeviceModel& device, const KernelClass& kernel) {
  if (kernel.half_precision) {
    return device.fp16.flops_per_second > 0 ? device.fp16 : device.bf16;
  }
  if (kernel.tensor_cores && device.tf32.flops_per_second > 0) return device.tf32;
  return device.fp32;
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

}  // namespace foretrace
