#include "transform/edit/donor_steps.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "base/statistics.h"
#include "foretrace/machine.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/edit.h"

namespace foretrace {
std::uint32_t NameNumbers::of(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace(name, number);
  return number;
}

KernelSteps kernel_steps(const Graph& graph, const std::vector<TaskId>& kernels) {
  std::vector<TaskId> order = kernels;
  sort_by_start(order, simulate(graph, {.memory = false}).start);
  KernelSteps steps;
  for (const TaskId task : order) steps[graph.task(task).step].push_back(task);
  return steps;
}

std::string kind_of_kernel(std::string_view name) {
  const KernelClass kernel = classify_kernel(name);
  constexpr std::string_view kBounds[] = {"compute", "memory", "latency"};
  constexpr std::string_view kPatterns[] = {"", " pointwise", " reduction", " normalization"};
  return fmt::format("{}{}", kBounds[static_cast<std::size_t>(kernel.bound)],
                     kPatterns[static_cast<std::size_t>(kernel.pattern)]);
}

DonorSteps::DonorSteps(const Graph& donor) {
  const KernelSteps steps = kernel_steps(donor, Selector("kernel").select(donor));
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
  take_typical(donor, steps);
}

void DonorSteps::take_typical(const Graph& donor, const KernelSteps& steps) {
  std::vector<const std::vector<TaskId>*> sizes;
  for (const auto& [step, kernels] : steps) {
    if (step >= 0 || !has_steps_) sizes.push_back(&kernels);
  }
  if (sizes.empty()) return;
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const auto* a, const auto* b) { return a->size() < b->size(); });
  const std::vector<TaskId>& chosen = *sizes[sizes.size() / 2];
  std::vector<std::vector<Nanoseconds>> times(chosen.size());
  for (const std::vector<TaskId>* step : sizes) {
    const bool same =
        std::equal(step->begin(), step->end(), chosen.begin(), chosen.end(),
                   [&](TaskId a, TaskId b) { return donor.task(a).name == donor.task(b).name; });
    if (!same) continue;
    for (std::size_t i = 0; i < step->size(); ++i) {
      times[i].push_back(donor.task((*step)[i]).duration);
    }
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    typical_.push_back({std::string(donor.name(chosen[i])), median(times[i])});
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
