#pragma once

// A baseline that many what-ifs are asked of: it is replayed once.

#include <optional>
#include <vector>

#include "foretrace/ledger_file.h"
#include "foretrace/scenario.h"
#include "scenario/interval/step_variation.h"

namespace foretrace {

struct Baseline {
  Timeline replayed;
  Prediction prediction;  ///< What is the same whatever the what-if.
  /// Set it, from the same inference, for intervals by replays with the work of other steps.
  /// Without it predictions cost much less, and what steps vary by is scaled from the recording.
  std::optional<StepVariation> variation = {};
  std::vector<KnownOutcome> own = {};  ///< The user's ledger; may be set.
  /// Whether each prediction is graded by what its own replay leaves open. Without it none has a
  /// grade, and many small ones cost half.
  bool weighs_changes = true;
};

Baseline baseline_of(const Inference& inference);

/// Copies what a prediction says of the job as recorded, and compares `to` with it: the slowest
/// rank of a what-if may not be the one that was the slowest when recorded.
void take_recorded(const Prediction& from, Prediction& to);

/// As predict(), for a scenario whose transforms have learnt from their donors already. May be
/// called from several threads.
Prediction predict_on(const Baseline& baseline, const Inference& inference,
                      const Scenario& scenario);

}  // namespace foretrace
