#include "question/predict/rates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "foretrace/machine.h"
#include "question/predict/ranks.h"

namespace foretrace {
namespace {

void set_peak(const DeviceModel& device, StepRates& rates) {
  rates.peak_flops = std::max(device.fp16.flops_per_second, device.bf16.flops_per_second);
  rates.peak_of = device.name;
}

void add_flops(const Graph& graph, const Timeline& timeline, StepRates& rates) {
  std::vector<signed char> compute_bound(graph.names().size(), -1);
  Nanoseconds known{0}, all{0};
  const StepWindow window = step_window(graph, timeline);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    const Nanoseconds start = timeline.start[i];
    if (task.kind != TaskKind::kernel || start < window.from || start >= window.to) continue;
    signed char& is_compute_bound = compute_bound[static_cast<std::size_t>(task.name)];
    if (is_compute_bound < 0) {
      const KernelClass kernel = classify_kernel(graph.names()[task.name]);
      is_compute_bound = kernel.bound == Boundness::compute ? 1 : 0;
    }
    rates.flops += task.flops;
    if (is_compute_bound == 0) continue;
    all += task.duration;
    if (task.flops > 0) known += task.duration;
  }
  rates.flops /= static_cast<double>(std::max<std::int64_t>(window.steps, 1));
  if (all > 0ns)
    rates.known_share = static_cast<double>(known.count()) / static_cast<double>(all.count());
}

}  // namespace

StepRates rates_of(const Graph& graph, const Timeline& timeline, const Scenario& scenario) {
  StepRates rates;
  rates.samples = scenario.samples_per_step;
  rates.tokens = scenario.tokens_per_step;
  add_flops(graph, timeline, rates);
  for (const std::string& recorded : graph.device_names()) {
    if (recorded.empty()) continue;
    if (const DeviceModel* device = device_recorded_as(recorded)) set_peak(*device, rates);
    break;
  }
  return rates;
}

std::string known_device(const Graph& graph) {
  for (const std::string& recorded : graph.device_names()) {
    if (const DeviceModel* device = device_recorded_as(recorded)) return device->name;
  }
  return {};
}

RepeatedStep repeated_step(const JobRanks& job, const Scenario& scenario, Nanoseconds step_time) {
  StepRates rates{.peak_of = known_device(job.ranks.front().inference.graph),
                  .tokens = scenario.tokens_per_step};
  rates = changed_rates(std::move(rates), scenario);
  RepeatedStep step{.time = step_time,
                    .lower = step_time,
                    .upper = step_time,
                    .gpus = whole_size(job),
                    .device = rates.peak_of};
  for (const auto& transform : scenario.transforms) step.gpus *= transform->job_change().ranks;
  if (rates.tokens > 0) step.tokens = rates.tokens;
  return step;
}

StepRates changed_rates(StepRates rates, const Scenario& scenario) {
  if (!scenario.machine.empty()) set_peak(find_device(scenario.machine), rates);
  for (const auto& transform : scenario.transforms) {
    const JobChange change = transform->job_change();
    rates.samples *= change.samples;
    rates.tokens *= change.tokens;
    // Flops are those of one rank, because the peak is that of its device.
    rates.flops *=
        change.tokens == change.samples ? change.samples / static_cast<double>(change.ranks) : 0;
    if (!change.device.empty()) set_peak(find_device(change.device), rates);
  }
  return rates;
}

}  // namespace foretrace
