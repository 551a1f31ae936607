#include "ask/interval/step_kinds.h"

#include <algorithm>
#include <numeric>

#include "base/numbers/scaling.h"
#include "base/statistics.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostKinds = 4;

Nanoseconds median_of(const StepTimes& times, const std::vector<std::size_t>& steps) {
  std::vector<Nanoseconds> all;
  for (const std::size_t step : steps) all.push_back(times.each[step]);
  return median(std::move(all));
}

}  // namespace

std::vector<std::size_t> StepKinds::unlike() const {
  std::vector<std::size_t> steps;
  if (!typical) return steps;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kind != *typical) steps.insert(steps.end(), kinds[kind].begin(), kinds[kind].end());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

StepKinds kinds_of_steps(const StepTimes& measured) {
  StepKinds found;
  if (measured.period > 1 || measured.each.size() < measured.first + 2) return found;
  std::vector<std::size_t> order(measured.steps());
  std::iota(order.begin(), order.end(), measured.first);
  const auto time = [&](std::size_t step) { return measured.each[step]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return time(a) < time(b); });
  for (const std::size_t step : order) {
    if (found.kinds.empty() ||
        time(step) > scaled(time(found.kinds.back().back()), 1 + kWideSpread))
      found.kinds.emplace_back();
    found.kinds.back().push_back(step);
  }
  if (found.kinds.size() < 2 || found.kinds.size() > kMostKinds) return {};
  for (std::size_t kind = 0; kind < found.kinds.size(); ++kind) {
    const auto& steps = found.kinds[kind];
    if (time(steps.front()) <= measured.step_time && measured.step_time <= time(steps.back()))
      found.typical = kind;
  }
  return found;
}

std::vector<StepsAlike> steps_by_kind(const StepTimes& measured, const StepTimes& predicted) {
  std::vector<StepsAlike> all;
  if (predicted.each.size() != measured.each.size()) return all;
  const StepKinds found = kinds_of_steps(measured);
  for (std::size_t kind = 0; kind < found.kinds.size(); ++kind) {
    const std::vector<std::size_t>& steps = found.kinds[kind];
    const bool typical = found.typical == kind;
    all.push_back({.steps = steps.size(),
                   .measured = typical ? measured.step_time : median_of(measured, steps),
                   .predicted = typical ? predicted.step_time : median_of(predicted, steps),
                   .is_typical = typical});
  }
  return all;
}

}  // namespace foretrace
