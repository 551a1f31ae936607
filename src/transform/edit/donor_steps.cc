#include "transform/edit/donor_steps.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "foretrace/machine.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/edit.h"

namespace foretrace {

KernelSteps kernel_steps(const Graph& graph, const Timeline& timeline,
                         const std::vector<TaskId>& kernels) {
  std::vector<TaskId> order = kernels;
  sort_by_start(order, timeline.start);
  KernelSteps steps;
  for (const TaskId task : order) steps[graph.task(task).step].push_back(task);
  return steps;
}

std::vector<StepKind> step_kinds(const Graph& graph, const KernelSteps& steps) {
  std::map<std::vector<NameId>, StepKind> by_names;
  std::vector<const std::vector<TaskId>*> all;
  for (const auto& [step, kernels] : steps) {
    if (step < 0 && steps.rbegin()->first >= 0) continue;
    std::vector<NameId> names;
    for (const TaskId task : kernels) names.push_back(graph.task(task).name);
    by_names[std::move(names)].steps.push_back(&kernels);
    all.push_back(&kernels);
  }
  std::vector<StepKind> kinds;
  for (auto& [names, kind] : by_names) {
    kind.is_common = 10 * kind.steps.size() >= all.size();
    if (kind.steps.size() > 1) kinds.push_back(std::move(kind));
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const StepKind& a, const StepKind& b) {
    return a.steps.size() > b.steps.size();
  });
  if (!kinds.empty() || all.empty()) return kinds;
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->size() < b->size(); });
  return {{.steps = {all[all.size() / 2]}}};
}

double waiting_share(const Graph& graph, const Timeline& timeline) {
  const Breakdown step = breakdown(graph, timeline);
  const Nanoseconds waits = step.input + step.host + step.idle;
  const Nanoseconds all = waits + step.compute + step.communication + step.copy + step.unknown;
  return ratio(waits, all);
}

std::string kind_of_kernel(std::string_view name) {
  const KernelClass kernel = classify_kernel(name);
  constexpr std::string_view kBounds[] = {"compute", "memory", "latency"};
  constexpr std::string_view kPatterns[] = {"", " pointwise", " reduction", " normalization"};
  return fmt::format("{}{}", kBounds[static_cast<std::size_t>(kernel.bound)],
                     kPatterns[static_cast<std::size_t>(kernel.pattern)]);
}

DonorSteps::DonorSteps(const Graph& donor) {
  const Timeline timeline = simulate(donor, {.memory = false});
  const KernelSteps steps = kernel_steps(donor, timeline, Selector("kernel").select(donor));
  waits_ = waiting_share(donor, timeline);
  for (const auto& [step, kernels] : steps) {
    has_steps_ = has_steps_ || step >= 0;
    for (const TaskId id : kernels) {
      const Task& task = donor.task(id);
      const std::string name(donor.name(id));
      for (KernelTimes* to : {&names_[name], &kinds_[kind_of_kernel(name)]}) {
        to->durations.push_back(task.duration);
        if (task.flops <= 0) continue;
        to->flops += task.flops;
        to->with_flops += task.duration;
      }
    }
  }
  for (auto* all : {&names_, &kinds_}) {
    for (auto& [name, known] : *all) known.typical = median(std::exchange(known.durations, {}));
  }
  for (const StepKind& kind : step_kinds(donor, steps)) {
    Kind& taken = step_kinds_.emplace_back();
    taken.is_common = kind.is_common;
    for (std::size_t i = 0; i < kind.steps.front()->size(); ++i) {
      std::vector<Nanoseconds> times;
      for (const auto* step : kind.steps) times.push_back(donor.task((*step)[i]).duration);
      const TaskId first = (*kind.steps.front())[i];
      taken.kernels.push_back({std::string(donor.name(first)), median(std::move(times))});
    }
  }
}

std::optional<Nanoseconds> DonorSteps::by_name(std::string_view name) const {
  const auto found = names_.find(name);
  if (found == names_.end()) return std::nullopt;
  return found->second.typical;
}

std::optional<Nanoseconds> DonorSteps::by_kind(const std::string& kind, double flops) const {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return std::nullopt;
  const KernelTimes& known = found->second;
  if (flops > 0 && known.flops > 0) return scaled(known.with_flops, flops / known.flops);
  return known.typical;
}

}  // namespace foretrace
