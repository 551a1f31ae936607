#pragma once

// How the work of a recording's steps differs, task by task: each step is put beside one of them,
// the reference, and the work of its tasks is summed by the task of the reference they belong to.
//
//                 load   launch   gemm
//     step 1        10        5     50     <- reference
//     step 2        14        5     60
//     step 3        12        4     40
//
// A row of this table holds what the same work took in one step and another. Steps are drawn whole:
// what is slow together in a step stays together.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace {

class StepVariation {
 public:
  static constexpr std::uint32_t kNoRow = 0xffffffff;

  /// Linear in tasks x the steps that are taken (twelve at most). `waits`, by task: the part of its
  /// time that was waiting for other ranks, which is no work; empty: none.
  explicit StepVariation(const Inference& inference, std::span<const Nanoseconds> waits = {});

  /// Numbers of the steps whose work can be drawn, the warm-up left out; among those that have
  /// tasks, as StepTimes::each counts. Fewer than two: nothing is known.
  std::span<const std::size_t> donors() const { return donors_; }
  /// Steps that have tasks.
  std::size_t step_count() const { return step_count_; }

  /// The known facts about a task of the recording.
  struct Place {
    std::uint32_t row = kNoRow;
    std::uint32_t step = 0;  ///< Its own.
    float own = 0;           ///< Work of the row in its own step, in ns.
  };
  const Place& place(TaskId task) const { return places_[index(task)]; }
  std::size_t task_count() const { return places_.size(); }
  /// Work of a row in each of donors(), in ns.
  std::span<const float> row(std::uint32_t row) const {
    return std::span(work_).subspan(row * donors_.size(), donors_.size());
  }

 private:
  friend class VariationTable;  // Fills it, in step_variation.cc.
  std::vector<std::size_t> donors_;
  std::size_t step_count_ = 0;
  std::vector<Place> places_;
  std::vector<float> work_;
};

/// Replays with the work of other steps take twice the memory of the graph itself: beyond this they
/// are left out, and what steps vary by is scaled from the recording.
constexpr std::size_t kMostTasksVaried = 8'000'000;

/// Nothing for a graph of more tasks than that.
std::optional<StepVariation> variation_of(const Inference& inference);

}  // namespace foretrace
