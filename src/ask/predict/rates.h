#pragma once

#include "foretrace/answer/prediction.h"
#include "foretrace/ask/predict.h"

namespace foretrace {

/// The rates of the recorded job: arithmetic in the counted steps, the peak of the recorded device,
/// and the samples given in the scenario.
StepRates rates_of(const Graph& graph, const Timeline& timeline, const Scenario& scenario);

/// The rates after the scenario. The model stays the recorded one, so its arithmetic grows with the
/// samples alone; recomputed work does not count. The arithmetic is unknown (0) for sequences of
/// another length.
StepRates changed_rates(StepRates rates, const Scenario& scenario);

}  // namespace foretrace
