#pragma once

#include <string>

#include "foretrace/answer/prediction.h"
#include "foretrace/question/predict.h"
#include "foretrace/question/training.h"
#include "job/job.h"

namespace foretrace {

/// The rates of the recorded job: arithmetic in the counted steps, the peak of the recorded device,
/// and the samples given in the scenario.
StepRates rates_of(const Graph& graph, const Timeline& timeline, const Scenario& scenario);

/// The rates after the scenario. The model stays the recorded one, so its arithmetic grows with the
/// samples alone; recomputed work does not count. The arithmetic is unknown (0) for sequences of
/// another length.
StepRates changed_rates(StepRates rates, const Scenario& scenario);

/// The built-in name of the first recorded device that is known; empty if none is.
std::string known_device(const Graph& graph);

/// A step of the changed job, for run_of(): on all ranks of the job, on the device that the
/// scenario names or that was recorded.
RepeatedStep repeated_step(const JobRanks& job, const Scenario& scenario, Nanoseconds step_time);

}  // namespace foretrace
