#pragma once

// How the work of a recording's steps differs, task by task: each step is compared with one of
// them, the reference, and its work is summed by the task of the reference that it belongs to.
//
//                 load   launch   gemm
//     step 1        10        5     50     <- reference
//     step 2        14        5     60
//     step 3        12        4     40
//
// A row of work (a column of this picture) holds what the same work took in one step and another.
// Steps are drawn whole: work that is slow together in a step stays together.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace {

class StepVariation {
 public:
  static constexpr std::uint32_t kNoRow = 0xffffffff;

  /// Linear in tasks x the steps that are taken (twelve at most). `waits` is, by task, the part of
  /// its time that was waiting for other ranks and is no work; empty if there was none.
  explicit StepVariation(const Inference& inference, std::span<const Nanoseconds> waits = {});

  /// Numbers of the steps whose work can be drawn, without the warm-up; counted among the steps
  /// with tasks, as in StepTimes::each. If there are fewer than two, the variation is unknown.
  std::span<const std::size_t> donors() const { return donors_; }
  /// Number of steps that have tasks.
  std::size_t step_count() const { return step_count_; }

  /// The row that a task of the recording belongs to.
  struct TaskRow {
    std::uint32_t row = kNoRow;
    std::uint32_t step = 0;  ///< Step of the task.
    float work = 0;          ///< Work of the row in that step, in ns.
  };
  const TaskRow& task_row(TaskId task) const { return task_rows_[index(task)]; }
  std::size_t task_count() const { return task_rows_.size(); }
  /// Work of a row in each of donors(), in ns.
  std::span<const float> row(std::uint32_t row) const {
    return std::span(work_).subspan(row * donors_.size(), donors_.size());
  }

 private:
  friend class VariationTable;  // Builds the table, in step_variation.cc.
  std::vector<std::size_t> donors_;
  std::size_t step_count_ = 0;
  std::vector<TaskRow> task_rows_;
  std::vector<float> work_;
};

/// Replays with the work of other steps take twice the memory of the graph itself. For larger
/// graphs they are left out, and the variation is scaled from the recording.
constexpr std::size_t kMostTasksVaried = 8'000'000;

/// Returns nullopt for a graph with more tasks than kMostTasksVaried.
std::optional<StepVariation> variation_of(const Inference& inference);

}  // namespace foretrace
