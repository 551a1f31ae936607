#pragma once

// Where the doubts about one prediction come from; interval.h draws from them.

#include <span>

#include "ask/interval/interval.h"
#include "ask/interval/step_variation.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/infer.h"

namespace foretrace {

struct Doubted {
  const Inference& inference;
  const Graph& changed;  ///< A clone of the inferred graph after the what-if, or the graph itself.
  const Prediction& prediction;
  /// nullptr: nothing is replayed again; the variation of steps is scaled from the recording.
  const StepVariation* variation = nullptr;
  std::span<const KnownOutcome> own = {};  ///< The user's ledger.
};

IntervalInputs interval_inputs(const Doubted& doubted);

}  // namespace foretrace
