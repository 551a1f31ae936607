#pragma once

#include <string>

#include "foretrace/answer/advice.h"

namespace foretrace {

/// Names the bound of a step: the kind of work without which the step would be shortest, read from
/// the table of upper bounds, so that the two cannot disagree. Without these it is the kind that
/// takes most of the critical path.
std::string bound_sentence(const Advice& advice);

}  // namespace foretrace
