#pragma once

// How the step time of few steps follows from them, in a file that was exported: a timeline that is
// read back must have the step time of the prediction that it shows.

#include <string>
#include <string_view>

#include "foretrace/task.h"

namespace foretrace {

/// Key in Trace::metadata; the value is a JSON array of three times in ns.
inline constexpr std::string_view kFewStepsKey = "foretraceFewSteps";

std::string few_steps_as_json(const StepRule& rule);
/// Takes what few_steps_as_json() wrote; leaves the rule as it is if `json` is anything else.
void take_few_steps(std::string_view json, StepRule& rule);

}  // namespace foretrace
