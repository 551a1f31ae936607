#pragma once

// When more GPUs pay.

#include <string>

#include "ask/advise/advised_job.h"
#include "foretrace/answer/advice.h"

namespace foretrace {

/// The job on 2, 4, 8 ... GPUs of `network`, data parallel, up to 1,024 or as many as it has. Works
/// on all cores.
MoreGpus more_gpus(const AdvisedJob& job, const std::string& network);

}  // namespace foretrace
