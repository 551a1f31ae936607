#pragma once

// Figures of a replayed load.

#include <vector>

#include "foretrace/answer/serving.h"
#include "serve/loop.h"

namespace foretrace::serve {

/// Has no intervals. Token times of requests with one token count nowhere but in TTFT. REQUIRES: at
/// least one request.
ServingPoint figures_of(const ServedLoad& load, std::int64_t gpus);

/// The value below which `share` of all weight lies, interpolated as numpy does if each pair stands
/// for so many equal values. Reorders.
double weighted_quantile(std::vector<Gap>& gaps, double share);

}  // namespace foretrace::serve
