#pragma once

// The answer about one rank: what it does as recorded, what a scenario makes of it, and how far to
// believe that.

#include <optional>
#include <span>
#include <vector>

#include "ask/interval/inputs.h"
#include "ask/interval/step_variation.h"
#include "ask/job/job.h"
#include "ask/predict/baseline.h"
#include "foretrace/ask/ledger.h"
#include "foretrace/ask/predict.h"
#include "foretrace/graph.h"
#include "foretrace/infer.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// An answer and its sources, so that the predicted timeline can be written.
struct Answer {
  Prediction prediction;
  Graph graph;  ///< Empty for the job as recorded, unless it is to be written.
  Timeline timeline;
  const Graph* recorded = nullptr;  ///< Belongs to the rank that the answer is about.
  const Trace* trace = nullptr;     ///< Belongs to the same rank, if it is known.
  std::vector<Answer> others = {};  ///< The other ranks, if their timelines are wanted.
  /// Where the ranks meet; nullptr where they do not.
  const Job* job = nullptr;
  std::uint32_t place = 0;  ///< Of the rank, among those of the world.
};

/// The part that is common to all what-ifs. Throws TraceError where no step takes any time.
Prediction described_baseline(const Inference& inference, const Timeline& replayed);

/// Adds the scenario as JSON, and its limit of memory.
void note_question(const Scenario& scenario, Prediction& prediction);

/// Fills in everything that follows from an edited graph and its timeline; `memory`: the peaks as
/// well. Takes `edited.applied`. Throws Error where no work is left in a step.
void describe_edit(const Scenario& scenario, Edited& edited, bool memory, Prediction& prediction);

/// Adds notes on memory that does not suffice, lanes with too much work, and edits without effect.
void note_edit(const Edited& edited, Prediction& prediction);

/// The answer to a question that edits nothing. `prediction` describes the baseline.
Answer as_recorded(const Inference& inference, Timeline replayed, Prediction prediction,
                   const Scenario& scenario, const PredictOptions& options);

/// The answer without its interval and grade. `edited` is empty where the scenario edits nothing.
Answer answer(const Inference& inference, const Scenario& scenario, Timeline replayed,
              std::optional<Edited> edited, const PredictOptions& options, bool has_times = true);
/// The same about a rank of a job. Errors of the trace say which; those of the scenario are about
/// all ranks.
Answer answer(const Job& job, const Rank& rank, const Scenario& scenario, Timeline replayed,
              std::optional<Edited> edited, const PredictOptions& options);

/// `variation` is nullptr where only the point is worth the time.
void set_interval(const Inference& inference, const Graph& changed, const StepVariation* variation,
                  std::span<const KnownOutcome> own, Prediction& prediction,
                  const DoubtedRanks* ranks = nullptr);
/// The interval and the grade; by replays, where the trace has times.
void set_interval(const Inference& inference, std::span<const KnownOutcome> own, Answer& answer,
                  const DoubtedRanks* ranks = nullptr);

/// The grade, for a prediction with everything else filled in.
void judge(const Inference& inference, const Graph& changed, std::span<const KnownOutcome> own,
           Prediction& prediction);

}  // namespace foretrace
