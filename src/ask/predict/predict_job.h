#pragma once

#include <vector>

#include "ask/job/job.h"
#include "foretrace/ask/predict.h"

namespace foretrace {

/// Like the public predict(), for a job that was read with Joining::required, and its inputs.
/// `options.reading` and `options.world_size` are those that it was read with.
Prediction predict(const Job& job, const std::vector<InputFile>& inputs, const Scenario& scenario,
                   const PredictOptions& options);

}  // namespace foretrace
