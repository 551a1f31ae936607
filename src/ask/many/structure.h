#pragma once

// Common state of questions of a sweep that differ only in durations: the graph as edited for one
// of them, compiled, and the transforms that change durations.
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

#include "ask/job/apply.h"
#include "ask/job/retimed.h"
#include "ask/predict/baseline.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/ask/predict.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "foretrace/transform.h"
#include "timeline/step_probes.h"

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
  std::uint64_t loaded_ = 0;  ///< The question whose durations are loaded.
  std::vector<std::vector<Nanoseconds>> sets_;
  std::vector<std::vector<std::string>> held_;  ///< By set and stage: the last retimed settings.
  std::vector<std::vector<char>> idle_;         ///< Whether they left all durations as they were.
  std::vector<Nanoseconds> before_, after_;
};

class SweepStructure {
 public:
  /// Applies the scenario to the inferred graph, which must outlive this. Its transforms from
  /// `tail` on only retime. Throws Error where that fails, where lanes are not all in line, or
  /// where peaks are wanted of a graph with memory.
  SweepStructure(const Inference& inference, const Scenario& scenario, std::size_t tail,
                 Donors& donors, const Wanted& wanted);

  /// One question: its transforms from the tail on, and a text that identifies their settings.
  struct Question {
    std::vector<const Transform*> transforms;
    std::vector<std::string> settings;
  };
  struct Answer {
    Nanoseconds step_time{0};
    OpenStepTime open = {};  ///< As open_step_time() finds it, where trust is wanted.
    std::vector<AppliedStep> steps = {};
  };
  /// The answers to at most SweepScratch::kSets questions; nothing where the answer has to be found
  /// without the structure, to say why there is none.
  std::vector<std::optional<Answer>> answers(std::span<const Question> questions,
                                             SweepScratch& scratch) const;

  std::size_t task_count() const { return compiled_->task_count(); }

 private:
  /// The tasks that one transform retimes.
  struct Stage {
    std::vector<RetimedTask> tasks;
    std::vector<std::uint32_t> rows;  ///< Rows of the tasks in the compiled graph.
    /// Their durations before the first stage, if no earlier stage retimes any of them; otherwise
    /// empty.
    std::vector<Nanoseconds> before;
    /// No other stage retimes any of them: as long as the settings stay, durations do.
    bool is_exclusive = false;
    /// The transform changes nothing but their durations: where those stay, it changed nothing.
    bool only_durations = false;
  };
  /// A task that gets back its duration before anything is retimed.
  struct Restored {
    TaskId task = kNoTask;
    std::uint32_t row = 0;
    Nanoseconds duration{0};
  };

  Graph edit(const Inference& inference, const Scenario& scenario, std::size_t tail,
             Donors& donors);
  void number_rows(const Graph& edited);
  void load(SweepScratch& scratch) const;
  bool retime(const Question& question, SweepScratch& scratch, std::size_t set) const;
  std::vector<AppliedStep> steps_of(const std::vector<char>& idle) const;
  OpenStepTime open_of(std::span<const Nanoseconds> set, Nanoseconds step_time, Graph& graph,
                       Retimed& compiled) const;

  const Inference& inference_;
  std::uint64_t id_;
  std::vector<AppliedStep> steps_;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> moving_;  ///< By task: how many stages retime it. While it is made.
  std::vector<Restored> restored_;
  std::optional<Compiled> compiled_;
  std::optional<StepProbes> probes_;
  /// The edited graph, and how it is replayed without what is open; where trust is
  /// wanted, and something is open.
  std::optional<Graph> edited_;
  std::optional<Retimed> retimed_;
  std::vector<Nanoseconds> durations_;   ///< By row.
  std::vector<Nanoseconds> still_work_;  ///< Work of each stream, without retimed tasks.
  std::vector<std::vector<std::uint32_t>> moving_work_;  ///< Rows of these, by stream.
  double still_length_ = 0;  ///< All that passes if everything happens in turn.
};

}  // namespace foretrace
