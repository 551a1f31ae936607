#pragma once

#include <string>
#include <vector>

#include "foretrace/answer/sweep.h"

namespace foretrace {

/// Returns readable names for the settings of a sweep, in their order: "transforms[1].factor"
/// becomes "factor of scale (launch)", unless another setting would have the same name.
std::vector<std::string> setting_labels(const SweepHeader& header);

}  // namespace foretrace
