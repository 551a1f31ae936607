#pragma once

#include <string>

#include "foretrace/answer/advice.h"

namespace foretrace {

/// Returns a sentence that names what bounds a step: the kind of work without which the step would
/// be shortest. It is read from the table of ceilings, so that the two cannot disagree. Without
/// that table, it is the kind of work that takes most of the critical path.
std::string bound_sentence(const Advice& advice);

}  // namespace foretrace
