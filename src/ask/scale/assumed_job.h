#pragma once

// A job of which nobody has a trace: only how long its step takes is known.

#include <string>

#include "foretrace/infer.h"

namespace foretrace {

/// Steps of this length on one device, a third of each the forward pass, the rest the backward
/// pass (whose products are twice as many), in pieces, and an update. `device` is a name for
/// find_device(). Throws Error unless the time is above 0.
Inference assumed_job(Nanoseconds step_time, const std::string& device);

}  // namespace foretrace
