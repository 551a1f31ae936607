#pragma once

#include "foretrace/question/predict.h"
#include "job/job.h"

namespace foretrace {

/// Like the public vary(), for a job that was read already.
Curve vary(const JobRanks& job, const Scenario& scenario, const Vary& question,
           const std::string& ledger_path = {}, const ImportOptions& reading = {},
           const TrainingQuestion& training = {});

}  // namespace foretrace
