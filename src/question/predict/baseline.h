#pragma once

// The baseline of many what-ifs, which is replayed once.

#include <memory>
#include <optional>
#include <vector>

#include "analysis/doubt/step_variation.h"
#include "foretrace/ledger.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "job/apply.h"
#include "job/job.h"

namespace foretrace {

struct Baseline {
  Timeline replayed;
  Prediction prediction;  ///< The part that is common to all what-ifs.
  /// If set, from the same inference, intervals come from replays with the work of other steps.
  /// Otherwise predictions cost much less, and the variation of steps is scaled from the recording.
  std::optional<StepVariation> variation = {};
  std::vector<KnownOutcome> user_outcomes = {};  ///< The user's ledger, if there is one.
  /// Whether each prediction is graded by the open time of its own replay. Otherwise predictions
  /// have no grade, and many small ones cost half.
  bool grades_each_answer = true;
};

/// `reasons`: whether the replay records the reason for each start.
Baseline baseline_of(const Inference& inference, bool reasons = false);

/// The graph after a scenario, replayed.
struct Edited {
  Graph graph;
  Timeline timeline;
  StepTimes times;
  ApplyResult applied;

  Nanoseconds step_time() const { return times.step_time; }
};
/// Throws Error if one of the transforms cannot be applied.
Edited edited_by(const Graph& graph, const Scenario& scenario, const SimulateOptions& options,
                 Donors* donors = nullptr);

/// The ranks of a job after a scenario, replayed together if they meet.
struct EditedJob {
  JointReplay replay;  ///< Its timelines have moved into `ranks`.
  /// By rank of the world; empty for a rank that is like an earlier one.
  std::vector<Edited> ranks;

  Edited& of(std::size_t rank) { return ranks[replay.first_alike[rank]]; }
};
/// The ranks of a job after a scenario, not replayed yet. Ranks that the scenario does not tell
/// apart share an edit.
struct SharedEdits {
  struct Edit {
    std::size_t rank = 0;  ///< First rank of the world that uses it.
    Edited edited;
    std::size_t users = 0;  ///< Number of classes of ranks that still need it.
  };
  std::vector<Edit> all;
  std::vector<std::size_t> index_of;  ///< By rank of the world: index into `all`.
};
/// Throws Error if one of the transforms cannot be applied.
SharedEdits shared_edits(const JobRanks& job, const Scenario& scenario, Donors* donors);
EditedJob replayed(const JobRanks& job, SharedEdits edits, const JointOptions& options);

/// Both in one. Throws Error if one of the transforms cannot be applied.
EditedJob edited_by(const JobRanks& job, const Scenario& scenario, const JointOptions& options,
                    Donors* donors = nullptr);

/// Facts to compute for an edited graph beside its step time and interval.
struct EditedOptions {
  bool memory = true;  ///< Memory peaks; they need a replay with memory.
  bool trust = true;   ///< The grade; costs two more replays, and one if the step is shorter.
  bool alone = true;   ///< Whether the graph was replayed without other ranks.
};
/// Like predict_on(), for a graph that was edited already. Moves from `edited.applied`.
Prediction predict_edited(const Baseline& baseline, const Inference& inference,
                          const Scenario& scenario, Edited& edited, const EditedOptions& options);

/// Like predict(), without the breakdown. Safe to call from several threads.
Prediction predict_on(const Baseline& baseline, const Inference& inference,
                      const Scenario& scenario, Donors* donors = nullptr);
/// Like predict_on(), for the slowest rank of a job, with the memory peaks of the fullest.
/// `baselines` has one for each rank. Throws Error if the scenario names a rank that the job does
/// not have.
Prediction predict_slowest(const std::vector<Baseline>& baselines, const JobRanks& job,
                           const Scenario& scenario, Donors* donors);

/// Compares a what-if with the rank that was slowest as recorded, which may not be the slowest rank
/// of the what-if.
void compare_with(const RecordedRun& recorded, Prediction& prediction);

}  // namespace foretrace
