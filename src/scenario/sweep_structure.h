#pragma once

// What questions of a sweep have in common that differ in durations alone: the graph as edited for
// one of them, compiled, and the transforms behind which durations differ.
//
//     transforms   amp, loader   | scale, scale        the last ones only retime tasks
//     durations    the same      | element by element
//
// Exact: step times are those that predict_on() finds, by the same arithmetic.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretrace/infer.h"
#include "foretrace/report.h"
#include "foretrace/scenario.h"
#include "foretrace/simulate.h"
#include "foretrace/step_probes.h"
#include "foretrace/transform.h"

namespace foretrace {

/// Where the transforms begin all of which, to the last, have settings that only retime.
std::size_t retiming_tail(const Scenario& scenario);

/// Durations of eight questions; each thread has its own, and uses it for one structure after the
/// other.
class SweepScratch {
 public:
  static constexpr std::size_t kSets = 8;

 private:
  friend class SweepStructure;
  std::uint64_t loaded_ = 0;  ///< Whose durations they are.
  std::vector<std::vector<Nanoseconds>> sets_;
  std::vector<Nanoseconds> before_, after_;
};

class SweepStructure {
 public:
  /// Applies the scenario, whose transforms from `tail` on only retime. Throws Error where that
  /// fails, or where lanes are not all in line. `with_memory`: the peaks are asked for, which are
  /// known only where the graph has no memory.
  SweepStructure(const Inference& inference, Scenario& scenario, std::size_t tail,
                 bool with_memory);

  /// Of one question: its transforms from the tail on.
  using Question = std::vector<const Transform*>;
  /// Step times of at most SweepScratch::kSets questions; nothing where the answer has to be found
  /// without the structure, to say why there is none.
  std::vector<std::optional<Nanoseconds>> step_times(std::span<const Question> questions,
                                                     SweepScratch& scratch) const;

  const std::vector<AppliedStep>& steps() const { return steps_; }
  std::size_t task_count() const { return compiled_->task_count(); }

 private:
  /// What one transform retimes.
  struct Stage {
    std::vector<RetimedTask> tasks;
    std::vector<std::uint32_t> rows;  ///< Of the tasks, in the compiled graph.
  };
  /// A task that any stage retimes.
  struct Moving {
    std::uint32_t row = 0;
    std::int32_t stream = 0;  ///< Of StepProbes.
    Nanoseconds start{0};     ///< In front of the first stage.
    bool in_first_stage = false;
  };

  Graph edit(const Inference& inference, Scenario& scenario, std::size_t tail);
  void number_rows(const Graph& edited);
  void load(SweepScratch& scratch) const;
  bool retime(const Question& question, SweepScratch& scratch,
              std::vector<Nanoseconds>& durations) const;

  std::uint64_t id_;
  std::vector<AppliedStep> steps_;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> moving_of_;  ///< By task: into moving_, or none. While it is made.
  std::vector<Moving> moving_;
  std::vector<Nanoseconds> first_before_;  ///< Of the tasks of the first stage.
  std::optional<Compiled> compiled_;
  std::optional<StepProbes> probes_;
  std::vector<Nanoseconds> durations_;   ///< By row.
  std::vector<Nanoseconds> still_work_;  ///< Of each stream, without those that move.
  double still_length_ = 0;              ///< All that passes if everything happens in turn.
};

}  // namespace foretrace
