#pragma once

// The answer about one rank: what it does as recorded and after a scenario, and how reliable that
// prediction is.

#include <optional>
#include <span>
#include <vector>

#include "analysis/doubt/inputs.h"
#include "analysis/doubt/step_variation.h"
#include "foretrace/graph.h"
#include "foretrace/infer.h"
#include "foretrace/ledger.h"
#include "foretrace/question/predict.h"
#include "foretrace/timeline.h"
#include "job/job.h"
#include "question/predict/baseline.h"

namespace foretrace {

/// An answer and its sources, so that the predicted timeline can be written.
struct ReplayedRank {
  Prediction prediction;
  Graph graph;  ///< Empty for the job as recorded, unless its timeline is to be written.
  Timeline timeline;
  const Graph* recorded = nullptr;        ///< Belongs to the rank that the answer is about.
  const Trace* trace = nullptr;           ///< Belongs to the same rank, if it is known.
  std::vector<ReplayedRank> others = {};  ///< The other ranks, if their timelines are wanted.
  /// The job whose ranks meet; nullptr if they do not.
  const JobRanks* job = nullptr;
  std::uint32_t world_index = 0;     ///< Index of the rank in the world.
  std::vector<RankLane> ranks = {};  ///< For the page.
};

/// The part of a prediction that is common to all what-ifs, without the open time, which costs
/// replays. Throws TraceError if no step takes any time.
Prediction described_baseline(const Inference& inference, const Timeline& replayed);

/// Adds the scenario as JSON, and its memory limit.
void note_question(const Scenario& scenario, Prediction& prediction);

/// Fills in everything that follows from an edited graph and its timeline; with `memory` the peaks
/// as well. Moves from `edited.applied`. Throws Error if no work is left in a step.
void describe_edit(const Scenario& scenario, Edited& edited, bool memory, Prediction& prediction);

/// Adds notes on insufficient memory, on lanes with too much work, and on edits without effect.
void note_edit(const Edited& edited, Prediction& prediction);

/// The answer to a question that edits nothing. `prediction` describes the baseline.
ReplayedRank as_recorded(const Inference& inference, Timeline replayed, Prediction prediction,
                         const Scenario& scenario, const PredictOptions& options);

/// The answer without its interval and grade. `edited` is empty if the scenario edits nothing.
ReplayedRank answer(const Inference& inference, const Scenario& scenario, Timeline replayed,
                    std::optional<Edited> edited, const PredictOptions& options,
                    bool has_times = true);
/// The same for a rank of a job. Errors of the trace name the rank; errors of the scenario concern
/// all ranks.
ReplayedRank answer(const JobRanks& job, const Rank& rank, const Scenario& scenario,
                    Timeline replayed, std::optional<Edited> edited, const PredictOptions& options);

/// Sets the interval. Without `variation`, which costs replays, the variation is scaled from the
/// recording.
void set_interval(const Inference& inference, const Graph& changed, const StepVariation* variation,
                  std::span<const KnownOutcome> user_outcomes, Prediction& prediction,
                  const JointRanks* ranks = nullptr);
/// Sets the interval, the open time and the grade, by replays if the trace has times.
void set_interval(const Inference& inference, std::span<const KnownOutcome> user_outcomes,
                  ReplayedRank& answer, const JointRanks* ranks = nullptr);

/// Sets the grade of a prediction in which everything else is filled in. `alone`: the graph was
/// replayed without other ranks, so that its least step time bounds it.
void judge(const Inference& inference, const Graph& changed,
           std::span<const KnownOutcome> user_outcomes, bool alone, Prediction& prediction);

}  // namespace foretrace
