#pragma once

#include <string_view>

#include "foretrace/answer/advice.h"

namespace foretrace {

/// Reads "step_time <= 100ms" (or <), or "throughput >= 4000" (or >) in samples per second, where a
/// step has `samples` samples. Throws Error with the allowed forms.
AdviceTarget read_target(std::string_view text, double samples);

}  // namespace foretrace
