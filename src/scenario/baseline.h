#pragma once

// A baseline that many what-ifs are asked of: it is replayed once.

#include "foretrace/scenario.h"

namespace foretrace {

struct Baseline {
  Timeline replayed;
  Prediction prediction;  ///< What is the same whatever the what-if.
};

Baseline baseline_of(const Inference& inference);

/// As predict(), for a scenario whose transforms have learnt from their donors already. May be
/// called from several threads.
Prediction predict_on(const Baseline& baseline, const Inference& inference,
                      const Scenario& scenario);

}  // namespace foretrace
