#pragma once

// How far adding GPUs pays off.

#include <string>

#include "ask/advise/advised_job.h"
#include "foretrace/answer/advice.h"

namespace foretrace {

/// Predicts the job with data parallelism on 2, 4, 8 ... GPUs of `network`, up to 1,024 or as many
/// as it has. Works on all cores.
MoreGpus more_gpus(const AdvisedJob& job, const std::string& network);

}  // namespace foretrace
