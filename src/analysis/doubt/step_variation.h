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

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/infer.h"
#include "foretrace/timeline.h"

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
constexpr std::size_t kMaxTasksVaried = 8'000'000;

/// Returns nullopt for a graph with more tasks than kMaxTasksVaried.
std::optional<StepVariation> variation_of(const Inference& inference);

// Steps of a replay that run at two paces, though the recorded ones ran at one: some still work off
// what was launched before, the others go as fast as the host does.
//
//     recorded   10 10 10 10 10 10          replay   4 4 4 | 9 9 9
//
// The median is then that of whichever pace has more steps, so neither can be left out.

/// Medians of the faster and of the slower steps, and how many there are; of two or three steps
/// the fastest and the slowest.
struct Paces {
  Nanoseconds fast{0}, slow{0};
  std::size_t fast_steps = 0, slow_steps = 0;
};

/// "2 steps of the replay at 9.74 ms, 3 at 52.1 ms".
std::string to_text(const Paces& paces);

/// Splits the counted steps of a replay at their widest gap. Returns nullopt if they spread no
/// wider than kWideSpread or twice the `recorded` ones, or if only one of them or fewer than a
/// fifth are on one side, which is no pace.
std::optional<Paces> two_paces(const StepTimes& replayed, const StepTimes& recorded);

// Recorded steps that differ so much that they are of several kinds: a step that evaluates or
// allocates says nothing about how much the other steps vary.
//
//     20 20 | 50          steps 0 and 1 are alike, step 2 is of another kind

struct StepKinds {
  /// Indices into StepTimes::each, by kind; the kinds and the steps of each in order of their
  /// times.
  std::vector<std::vector<std::size_t>> kinds;
  /// The kind that the step time belongs to; empty if it lies between two kinds.
  std::optional<std::size_t> typical;

  /// The steps of the other kinds in ascending order; empty if no kind is typical.
  std::vector<std::size_t> unlike() const;
};

/// Splits the steps that count where one takes more than kWideSpread longer than the next faster
/// one. No kinds if they are all alike, if they alternate (these count by whole periods), or if
/// there are so many kinds that the times are one wide distribution.
StepKinds kinds_of_steps(const StepTimes& measured);

/// The recorded and the predicted step of each kind; empty if there is only one kind or if the
/// scenario changes the number of steps.
std::vector<StepsAlike> steps_by_kind(const StepTimes& measured, const StepTimes& predicted);

}  // namespace foretrace
