#pragma once

#include <vector>

#include "foretrace/price.h"

namespace foretrace {

/// From the first forward to the last backward, in microseconds. `costs` has pipeline x
/// virtual_stages parts.
double pipeline_us(const std::vector<StageCost>& costs, const Layout& layout);

}  // namespace foretrace
