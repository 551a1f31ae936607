#pragma once

#include <vector>

#include "foretrace/trace_part.h"

namespace foretrace {

/// Replaces each trace with this part of it. Throws Error, naming the option, if there is no such
/// part.
void cut_to(const Part& part, std::vector<Trace>& traces);

}  // namespace foretrace
