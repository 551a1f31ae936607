#pragma once

// Collects the sources of doubt about one prediction; interval.h draws from them.

#include <cstdint>
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

/// Whether work that a what-if made longer or added counts, or is as long as before.
enum class Longer : std::uint8_t { kept, undone };
/// Step time if the work that the what-if made shorter took no time at all. No replay is faster
/// than with the rest kept, and with it undone no step is, however wrong the model is.
Nanoseconds least_step_time(const Graph& recorded, const Graph& changed, Longer longer);

IntervalInputs interval_inputs(const IntervalEvidence& evidence);

/// The same for the kernel time of a step, Prediction::predicted_breakdown.compute: recorded steps
/// and the errors of what-ifs that changed kernels.
IntervalInputs kernel_inputs(const IntervalEvidence& evidence);

}  // namespace foretrace
