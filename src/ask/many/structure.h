#pragma once

// Common state of questions of a sweep that differ only in durations: the graphs of all ranks as
// edited for one of them, compiled, and the transforms that change durations.
//
//     transforms   amp, loader   | scale, scale        the last ones only retime tasks
//     durations    the same      | element by element
//
// Ranks that meet are replayed together, eight questions at once.
// Exact: step times are those that predict_on() finds, by the same arithmetic.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ask/job/apply.h"
#include "ask/job/job.h"
#include "ask/job/retimed.h"
#include "ask/predict/baseline.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/ask/predict.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "foretrace/transform.h"
#include "simulate/joint_rows.h"
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
  friend class RankStructure;
  struct Rank {
    std::vector<std::vector<Nanoseconds>> sets;
    std::vector<std::vector<std::string>> held;  ///< By set and stage: the last retimed settings.
    std::vector<std::vector<char>> idle;         ///< Whether they left all durations as they were.
  };
  std::uint64_t loaded_ = 0;  ///< The structure whose durations are loaded.
  std::vector<Rank> ranks_;
  std::vector<Nanoseconds> before_, after_;
};

/// One question: its transforms from the tail on, and a text that identifies their settings.
struct SweepQuestion {
  std::vector<const Transform*> transforms;
  std::vector<std::string> settings;
};

/// One rank of a structure: its graph as edited, and the tasks that are retimed.
class RankStructure {
 public:
  RankStructure(const Job& job, std::size_t rank, const Scenario& scenario, std::size_t tail,
                Donors& donors);

  const Graph& edited() const { return edited_; }
  /// The graph is compiled; `order` has the row of each task.
  void number_rows(std::span<const std::uint32_t> order);
  /// Frees the graph, unless open time has to be weighed.
  void keep_for(const Wanted& wanted);

  std::span<const TaskId> probes() const { return probes_->tasks(); }
  std::uint32_t row(TaskId task) const { return order_[index(task)]; }
  bool is_retimed(TaskId task) const { return moving_[index(task)] != 0; }

  SweepScratch::Rank loaded() const;
  /// False where the times may be more than the clock can count.
  bool retime(const SweepQuestion& question, SweepScratch& scratch, std::size_t rank,
              std::size_t set) const;

  /// The time that a task of a meeting took, from where it entered.
  struct Stay {
    TaskId task = kNoTask;
    Nanoseconds time{0};
  };
  struct Answer {
    Nanoseconds step_time{0};
    OpenStepTime open = {};  ///< As open_step_time() finds it, where trust is wanted.
    std::vector<AppliedStep> steps = {};
  };
  /// From the times of the probes in one replay; `set` has its durations, and `stays` those of
  /// tasks whose time the other ranks decide.
  std::optional<Answer> answer(ProbedTimes times, std::span<const Nanoseconds> set,
                               const std::vector<char>& idle, std::span<const Stay> stays) const;

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

  void edit(const Job& job, const Scenario& scenario, std::size_t tail, Donors& donors,
            std::size_t rank);
  std::size_t stream_of(TaskId task) const;
  std::vector<AppliedStep> steps_of(const std::vector<char>& idle) const;
  OpenStepTime open_of(std::span<const Nanoseconds> set, std::span<const Stay> stays,
                       Nanoseconds step_time) const;

  const Inference& inference_;
  std::vector<AppliedStep> steps_;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> moving_;  ///< By task: how many stages retime it.
  std::vector<std::uint32_t> order_;   ///< By task: its row.
  std::vector<Restored> restored_;
  std::optional<StepProbes> probes_;
  Graph edited_;
  /// How it is replayed without what is open; where trust is wanted, and something is open.
  std::optional<Retimed> retimed_;
  std::vector<Nanoseconds> durations_;   ///< By row.
  std::vector<Nanoseconds> still_work_;  ///< Work of each stream, without retimed tasks.
  std::vector<std::vector<std::uint32_t>> moving_work_;  ///< Rows of these, by stream.
  double still_length_ = 0;  ///< All that passes if everything happens in turn.
};

class SweepStructure {
 public:
  /// Applies the scenario to the inferred graphs of the job, which must outlive this. Its
  /// transforms from `tail` on only retime. Throws Error where that fails, where lanes are not all
  /// in line, or where peaks are wanted of a graph with memory.
  SweepStructure(const Job& job, const Scenario& scenario, std::size_t tail, Donors& donors,
                 const Wanted& wanted);

  /// The answer of the slowest rank.
  struct Answer {
    std::size_t rank = 0;
    RankStructure::Answer of_rank;
  };
  /// The answers to at most SweepScratch::kSets questions; nothing where the answer has to be found
  /// without the structure, to say why there is none.
  std::vector<std::optional<Answer>> answers(std::span<const SweepQuestion> questions,
                                             SweepScratch& scratch) const;

 private:
  /// A task of a meeting: its duration in a set includes the wait for others, which a replay of all
  /// ranks finds anew.
  struct Member {
    MeetingMember what;
    std::uint32_t row = 0;
  };
  using Answers = std::vector<std::optional<RankStructure::Answer>>;

  void compile(const Job& job);
  /// By rank, the answers to each.
  std::vector<Answers> replayed(std::span<const std::size_t> asked, SweepScratch& scratch) const;

  std::uint64_t id_;
  std::vector<RankStructure> ranks_;
  std::optional<JointRows> rows_;
  std::vector<std::vector<Member>> members_;  ///< By rank.
  std::vector<std::vector<Probe>> sorted_;    ///< By rank: its probes, and its members.
};

}  // namespace foretrace
