#pragma once

#include <string_view>

#include "foretrace/answer/advice.h"

namespace foretrace {

/// "step_time <= 100ms" (or <), and for `samples` in a step "throughput >= 4000" (or >), per
/// second. Throws Error with the allowed forms.
AdviceTarget read_target(std::string_view text, double samples);

}  // namespace foretrace
