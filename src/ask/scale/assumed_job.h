#pragma once

// A job without a trace, of which only the length of a step is known.

#include <optional>
#include <string>

#include "foretrace/infer.h"

namespace foretrace {

/// Makes steps of this length on one device. Each ends with an update; a third of the time before
/// it is the forward pass, and two thirds are the backward pass (which has twice as many products),
/// in pieces. `device` is a name for find_device(). Throws Error unless the step is longer than 0
/// and than the update.
Inference assumed_job(Nanoseconds step_time, std::optional<Nanoseconds> update_time,
                      const std::string& device);

}  // namespace foretrace
