#pragma once

// The baseline for many what-ifs: it is replayed once.

#include <memory>
#include <optional>
#include <vector>

#include "ask/interval/step_variation.h"
#include "ask/job/apply.h"
#include "ask/job/job.h"
#include "foretrace/ask/ledger.h"
#include "foretrace/ask/predict.h"
#include "foretrace/simulate.h"

namespace foretrace {

struct Baseline {
  Timeline replayed;
  Prediction prediction;  ///< The part that is common to all what-ifs.
  /// Set it, from the same inference, for intervals by replays with the work of other steps.
  /// Without it predictions cost much less, and the variation of steps is scaled from the
  /// recording.
  std::optional<StepVariation> variation = {};
  std::vector<KnownOutcome> own = {};  ///< The user's ledger; may be set.
  /// Whether each prediction is graded by the open time of its own replay. Without it none has a
  /// grade, and many small ones cost half.
  bool weighs_changes = true;
};

/// `reasons`: whether the replay records the reason for each start.
Baseline baseline_of(const Inference& inference, bool reasons = false);

/// The graph that a scenario leaves, replayed.
struct Edited {
  Graph graph;
  Timeline timeline;
  StepTimes times;
  Applied applied;

  Nanoseconds step_time() const { return times.step_time; }
};
/// Throws Error if one of the transforms cannot be applied.
Edited edited_by(const Graph& graph, const Scenario& scenario, const SimulateOptions& options,
                 Donors* donors = nullptr);

/// The ranks of a job that a scenario leaves, replayed together where they meet.
struct EditedJob {
  JointReplay replay;         ///< Its timelines have moved into `ranks`.
  std::vector<Edited> ranks;  ///< By rank of the world; empty for one like one before it.

  Edited& of(std::size_t rank) { return ranks[replay.alike[rank]]; }
};
/// Throws Error if one of the transforms cannot be applied.
EditedJob edited_by(const Job& job, const Scenario& scenario, const JointOptions& options,
                    Donors* donors = nullptr);

/// The facts wanted of an edited graph beside its step time and interval.
struct Wanted {
  bool memory = true;  ///< The peaks. Needs a replay with memory.
  bool trust = true;   ///< The grade; costs two more replays.
};
/// As predict_on(), for the edited graph of a scenario. Takes `edited.applied`.
Prediction predict_edited(const Baseline& baseline, const Inference& inference,
                          const Scenario& scenario, Edited& edited, const Wanted& wanted);

/// As predict() without the breakdown. May be called from several threads.
Prediction predict_on(const Baseline& baseline, const Inference& inference,
                      const Scenario& scenario, Donors* donors = nullptr);
/// The same of the slowest rank, with the memory of the fullest. `baselines` has one for each rank.
/// Throws Error if the scenario names a rank that the job does not have.
Prediction predict_slowest(const std::vector<Baseline>& baselines, const Job& job,
                           const Scenario& scenario, Donors* donors);

/// The slowest rank of a what-if may not be the one that was the slowest when recorded: then the
/// what-if is compared with that one.
void compare_with(const RecordedRun& recorded, Prediction& prediction);

}  // namespace foretrace
