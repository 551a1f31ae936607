#pragma once

// A job of which nobody has a trace: only how long its step takes is known.

#include <optional>
#include <string>

#include "foretrace/infer.h"

namespace foretrace {

/// Steps of this length on one device: an update, at the end of each, and in front of it a third
/// of the rest the forward pass and two thirds the backward pass (whose products are twice as
/// many), in pieces. `device` is a name for find_device(). Throws Error unless the step is longer
/// than 0 and than the update.
Inference assumed_job(Nanoseconds step_time, std::optional<Nanoseconds> update_time,
                      const std::string& device);

}  // namespace foretrace
