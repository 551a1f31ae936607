#pragma once

#include "ask/job/job.h"
#include "foretrace/ask/predict.h"

namespace foretrace {

/// Like the public vary(), for a job that was read already.
Curve vary(const Job& job, const Scenario& scenario, const Vary& question,
           const PredictOptions& options);

}  // namespace foretrace
