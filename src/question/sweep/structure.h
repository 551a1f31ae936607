#pragma once

// State shared by questions of a sweep that differ only in durations: the graphs of all ranks as
// edited for one of them, compiled, and the transforms that change durations.
//
//     transforms   amp, loader   | scale, scale        the last ones only retime tasks
//     durations    the same      | element by element
//
// Ranks that meet are replayed together, eight questions at once. The result is exact: step times
// equal those of predict_on(), by the same arithmetic.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/infer.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "foretrace/transform.h"
#include "job/apply.h"
#include "job/job.h"
#include "job/retimed_replay.h"
#include "question/predict/baseline.h"
#include "simulate/joint_rows.h"
#include "timeline/step_probes.h"

namespace foretrace {

/// Index of the first of the trailing transforms that all have settings that only retime.
std::size_t retiming_tail(const Scenario& scenario);

/// Durations of eight questions. Each thread has its own, and uses it for one structure after the
/// other.
class SweepScratch {
 public:
  static constexpr std::size_t kSets = 8;

 private:
  friend class SweepStructure;
  friend class RankStructure;
  struct Rank {
    std::vector<std::vector<Nanoseconds>> sets;
    /// By set and stage: the settings that were retimed last.
    std::vector<std::vector<std::string>> last_settings;
    /// By set and stage: whether these settings changed no duration.
    std::vector<std::vector<char>> unchanged;
  };
  std::uint64_t loaded_ = 0;  ///< The structure whose durations are loaded.
  std::vector<Rank> ranks_;
  std::vector<Nanoseconds> before_, after_;
};

/// One question: its transforms from the tail on, and texts that identify their settings.
struct RetimingQuestion {
  std::vector<const Transform*> transforms;
  std::vector<std::string> settings;
};

/// One rank of a structure: its edited graph, and the tasks that are retimed.
class RankStructure {
 public:
  RankStructure(const JobRanks& job, std::size_t rank, const Scenario& scenario, std::size_t tail,
                Donors& donors);

  const Graph& edited() const { return edited_; }
  /// Called when the graph is compiled; `order` has the row of each task.
  void number_rows(std::span<const std::uint32_t> order);
  /// Frees the graph, unless it is needed to weigh open time.
  void finish_compiling(const EditedOptions& options);

  std::span<const TaskId> probes() const { return probes_->tasks(); }
  std::uint32_t row(TaskId task) const { return order_[index(task)]; }
  bool is_retimed(TaskId task) const { return stage_counts_[index(task)] != 0; }

  SweepScratch::Rank initial_scratch() const;
  /// Retimes a set of durations for a question. Returns false if times may be more than the clock
  /// can count.
  bool retime(const RetimingQuestion& question, SweepScratch& scratch, std::size_t rank,
              std::size_t set) const;

  /// Time from the entry of a task of a collective to its end.
  struct MemberTime {
    TaskId task = kNoTask;
    Nanoseconds time{0};
  };
  struct ReplayedRank {
    StepTimes times;
    OpenStepTime open = {};  ///< Result of open_step_time(), if trust is wanted.
    std::vector<AppliedStep> steps = {};
  };
  /// Answers from the times of the probes in one replay. `set` has its durations, and
  /// `member_times` those of tasks that other ranks determine. Returns nullopt if no step takes any
  /// time.
  std::optional<ReplayedRank> answer(ProbedTimes times, std::span<const Nanoseconds> set,
                                     const std::vector<char>& unchanged,
                                     std::span<const MemberTime> member_times) const;

 private:
  /// The tasks that one transform retimes.
  struct Stage {
    std::vector<RetimedTask> tasks;
    std::vector<std::uint32_t> rows;  ///< Rows of the tasks in the compiled graph.
    /// Durations of the tasks before the first stage, if no earlier stage retimes any of them;
    /// otherwise empty.
    std::vector<Nanoseconds> before;
    /// No other stage retimes any of the tasks, so durations stay as long as the settings do.
    bool is_exclusive = false;
    /// The transform changes only the durations of the tasks: if these stay, it changed nothing.
    bool only_durations = false;
  };
  /// A task whose duration is restored before anything is retimed.
  struct Restored {
    TaskId task = kNoTask;
    std::uint32_t row = 0;
    Nanoseconds duration{0};
  };

  void edit(const JobRanks& job, const Scenario& scenario, std::size_t tail, Donors& donors,
            std::size_t rank);
  std::size_t stream_of(TaskId task) const;
  std::vector<AppliedStep> steps_of(const std::vector<char>& unchanged) const;
  OpenStepTime open_of(std::span<const Nanoseconds> set, std::span<const MemberTime> member_times,
                       Nanoseconds step_time) const;

  const Inference& inference_;
  std::vector<AppliedStep> steps_;
  std::vector<Stage> stages_;
  std::vector<std::uint32_t> stage_counts_;  ///< By task: how many stages retime it.
  std::vector<std::uint32_t> order_;         ///< By task: its row.
  std::vector<Restored> restored_;
  std::optional<StepProbes> probes_;
  Graph edited_;
  /// Replays the graph without open time; only if trust is wanted, and there is open time.
  std::optional<RetimedReplay> retimed_;
  std::vector<Nanoseconds> durations_;   ///< By row.
  std::vector<Nanoseconds> fixed_work_;  ///< Work of each stream, without retimed tasks.
  std::vector<std::vector<std::uint32_t>> retimed_rows_;  ///< Rows of retimed tasks, by stream.
  double serial_length_ = 0;  ///< Time in ns if everything ran one after the other.
};

class SweepStructure {
 public:
  /// Applies the scenario to the inferred graphs of the job, which must outlive this. Its
  /// transforms from `tail` on only retime. Throws Error if that fails, if lanes are not all FIFO,
  /// or if peaks are wanted of a graph with memory.
  SweepStructure(const JobRanks& job, const Scenario& scenario, std::size_t tail, Donors& donors,
                 const EditedOptions& options);

  /// The answer of the slowest rank.
  struct ReplayedRank {
    std::size_t rank = 0;
    RankStructure::ReplayedRank of_rank;
  };
  /// Answers at most SweepScratch::kSets questions. An answer is nullopt if it must be found
  /// without the structure, for instance to report an error.
  std::vector<std::optional<ReplayedRank>> answers(std::span<const RetimingQuestion> questions,
                                                   SweepScratch& scratch) const;

 private:
  /// A task of a collective. Its duration in a set includes the wait for others, which a replay of
  /// all ranks computes anew.
  struct MemberRow {
    CollectiveMember member;
    std::uint32_t row = 0;
  };
  using Answers = std::vector<std::optional<RankStructure::ReplayedRank>>;

  void compile(const JobRanks& job);
  /// By rank, the answers to the questions in `answerable`.
  std::vector<Answers> replayed(std::span<const std::size_t> answerable,
                                SweepScratch& scratch) const;

  std::uint64_t id_;
  std::vector<RankStructure> ranks_;
  std::optional<JointRows> rows_;
  std::vector<std::vector<MemberRow>> members_;  ///< By rank.
  std::vector<std::vector<Probe>> sorted_;       ///< By rank: its probes, and its members.
};

}  // namespace foretrace
