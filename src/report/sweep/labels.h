#pragma once

#include <string>
#include <vector>

#include "foretrace/answer/sweep.h"

namespace foretrace {

/// Names the settings of a sweep as people call them, in their order: "transforms[1].factor"
/// becomes "factor of scale (launch)" where that names one of them alone.
std::vector<std::string> setting_labels(const SweepHeader& header);

}  // namespace foretrace
