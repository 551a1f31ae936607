#include "analysis/doubt/step_variation.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <vector>

#include "analysis/match/step_work.h"
#include "analysis/match/transplant.h"
#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "base/wording.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxDonors = 12;
/// Most cells of a table, which limits its memory.
constexpr std::size_t kMaxCells = 40'000'000;

/// So few steps have no two paces, but each of them is much of what is known.
constexpr std::size_t kFewPaced = 4;

constexpr std::size_t kMaxKinds = 4;

Nanoseconds median_of(const StepTimes& times, const std::vector<std::size_t>& steps) {
  std::vector<Nanoseconds> all;
  for (const std::size_t step : steps) all.push_back(times.each[step]);
  return median(std::move(all));
}

}  // namespace

class VariationTable {
 public:
  VariationTable(const Inference& inference, std::span<const Nanoseconds> waits,
                 StepVariation& table)
      : work_(inference, names_, waits), table_(table) {
    table_.task_rows_.resize(inference.graph.task_count());
    table_.step_count_ = work_.count();
    if (work_.count() < 3) return;
    reference_ = 1 + (work_.count() - 1) / 2;
    number_rows();
    for (std::size_t step = 0; step < work_.count(); ++step) add(step);
    if (table_.donors_.size() < 2)
      table_.donors_.clear();
    else
      interleave();
  }

 private:
  void number_rows() {
    row_of_.assign(table_.task_rows_.size(), StepVariation::kNoRow);
    for (const auto& [lane, line] : work_.lines(reference_)) {
      for (const TaskId task : line.tasks)
        row_of_[index(task)] = static_cast<std::uint32_t>(rows_++);
    }
  }

  /// Whether the work of a step may be drawn. The first step is warm-up; of many steps only some
  /// are taken, spread evenly.
  bool may_be_drawn(std::size_t step) const {
    const std::size_t steady = work_.count() - 1;
    const std::size_t tasks = std::max<std::size_t>(table_.task_rows_.size(), 1);
    const std::size_t most = std::clamp<std::size_t>(kMaxCells / tasks, 2, kMaxDonors);
    if (step == 0) return false;
    return steady <= most || step * most / steady != (step - 1) * most / steady;
  }

  Transplant transplant_step(std::size_t step) const {
    return transplant(work_.lines(reference_), work_.lines(step));
  }

  void add(std::size_t step) {
    const Transplant found = transplant_step(step);
    if (step != reference_ && !found.alike()) return;
    std::vector<float> step_work(rows_, 0);
    for (const auto& [task, work] : found.durations)
      step_work[row_of_[index(task)]] = static_cast<float>(work.count());
    assign_rows(found, step, step_work);
    if (!may_be_drawn(step)) return;
    table_.donors_.push_back(step);
    columns_.push_back(std::move(step_work));
  }

  void interleave() {
    const std::size_t width = columns_.size();
    table_.work_.resize(rows_ * width);
    for (std::size_t column = 0; column < width; ++column) {
      for (std::size_t row = 0; row < rows_; ++row)
        table_.work_[row * width + column] = columns_[column][row];
    }
  }

  /// Assigns tasks to rows. If a row takes no time in the task's own step, only the first task of
  /// the row stands for it, so that work of another step counts once.
  void assign_rows(const Transplant& found, std::size_t step, const std::vector<float>& step_work) {
    std::uint32_t last = StepVariation::kNoRow;
    for (const auto& [into, from] : found.task_pairs) {
      const std::uint32_t row = row_of_[index(into)];
      if (step_work[row] > 0 || row != last) {
        table_.task_rows_[index(from)] = {row, static_cast<std::uint32_t>(step), step_work[row]};
      }
      last = row;
    }
  }

  Names names_;
  StepWork work_;
  StepVariation& table_;
  std::size_t reference_ = 0;
  std::size_t rows_ = 0;
  std::vector<std::uint32_t> row_of_;        ///< Row of each task of the reference.
  std::vector<std::vector<float>> columns_;  ///< Column of each donor.
};

StepVariation::StepVariation(const Inference& inference, std::span<const Nanoseconds> waits) {
  VariationTable(inference, waits, *this);
}

std::optional<StepVariation> variation_of(const Inference& inference) {
  if (inference.graph.task_count() > kMaxTasksVaried) return std::nullopt;
  return StepVariation(inference);
}

std::string to_text(const Paces& paces) {
  if (paces.fast_steps + paces.slow_steps < kFewPaced) {
    return fmt::format("steps of the replay take {} to {}", to_text(paces.fast),
                       to_text(paces.slow));
  }
  return fmt::format("{} of the replay at {}, {} at {}", counted(paces.fast_steps, "step"),
                     to_text(paces.fast), paces.slow_steps, to_text(paces.slow));
}

std::optional<Paces> two_paces(const StepTimes& replayed, const StepTimes& recorded) {
  constexpr double kTimesRecorded = 2;
  constexpr std::size_t kMinPart = 5;  // One in so many steps.
  if (replayed.counted.size() < 2) return {};
  if (replayed.spread <= std::max(kWideSpread, kTimesRecorded * recorded.spread)) return {};
  std::vector<Nanoseconds> times = replayed.counted;
  std::sort(times.begin(), times.end());
  std::size_t split = 1;
  for (std::size_t i = 2; i < times.size(); ++i) {
    if (times[i] - times[i - 1] > times[split] - times[split - 1]) split = i;
  }
  const std::size_t rest = times.size() - split;
  // The first of several steps may have a head start.
  const std::size_t fewer = std::min(split, rest), fewest = times.size() < kFewPaced ? 1 : 2;
  if (fewer < fewest || kMinPart * fewer < times.size()) return {};
  if (times.size() < kFewPaced) return Paces{times.front(), times.back(), split, rest};
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(split);
  return Paces{median(std::vector<Nanoseconds>(times.begin(), middle)),
               median(std::vector<Nanoseconds>(middle, times.end())), split, rest};
}

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
  if (found.kinds.size() < 2 || found.kinds.size() > kMaxKinds) return {};
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
