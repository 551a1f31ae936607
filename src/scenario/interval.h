#pragma once

// How far a prediction may be off, and why:
//
//     half width = spread of the recorded steps, scaled to the prediction
//                + |prediction - baseline| x share of time without a known or recorded cause
//                + error of this kind of what-if where its outcome is known, at most |prediction -
//                baseline|
//                + error of the unmodified replay
//
// The first is what the job itself varies by. The second: a delay whose cause is not known stays as
// it is in the prediction, but may in truth shrink or grow as the rest does; and a wait that was
// inferred may not be there. The third is from ledger.def.

#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct IntervalInputs {
  const StepTimes& measured;
  Nanoseconds baseline{0};
  Nanoseconds predicted{0};
  double replay_error = 0;
  const Unexplained& unexplained;
  double inferred_share = 0;      ///< Of the critical path.
  std::vector<std::string> uses;  ///< Transforms that were applied.
};

struct Interval {
  Nanoseconds lower{0}, upper{0};
  std::string source;
};
Interval interval_of(const IntervalInputs& inputs);

}  // namespace foretrace
