#include "ask/interval/step_variation.h"

#include <algorithm>

#include "ask/interval/transplant.h"
#include "ask/job/step_work.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostDonors = 12;
/// Most cells of a table, which limits its memory.
constexpr std::size_t kMostCells = 40'000'000;

}  // namespace

class VariationTable {
 public:
  VariationTable(const Inference& inference, std::span<const Nanoseconds> waits,
                 StepVariation& table)
      : work_(inference, keys_, waits), table_(table) {
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
    const std::size_t most = std::clamp<std::size_t>(kMostCells / tasks, 2, kMostDonors);
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

  KeyTable keys_;
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
  if (inference.graph.task_count() > kMostTasksVaried) return std::nullopt;
  return StepVariation(inference);
}

}  // namespace foretrace
