#pragma once

// Collects the sources of doubt about one prediction; interval.h draws from them.

#include <span>

#include "ask/interval/interval.h"
#include "ask/interval/resample.h"
#include "ask/interval/step_variation.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/infer.h"

namespace foretrace {

/// The ranks that were replayed together with the rank of the answer.
struct JointRanks {
  std::span<const ResampledRank> all;
  std::size_t shown = 0;  ///< The rank of the answer among them.
  const JointRows& rows;
};

struct IntervalEvidence {
  const Inference& inference;
  const Graph& changed;  ///< A clone of the inferred graph after the what-if, or the graph itself.
  const Prediction& prediction;
  /// If nullptr, nothing is replayed again, and the variation of steps is scaled from the
  /// recording.
  const StepVariation* variation = nullptr;
  std::span<const KnownOutcome> user_outcomes = {};  ///< The user's ledger.
  /// If nullptr, the rank is replayed alone, and waits for others as long as in the answer.
  const JointRanks* ranks = nullptr;
};

IntervalInputs interval_inputs(const IntervalEvidence& evidence);

}  // namespace foretrace
