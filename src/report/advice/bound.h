#pragma once

#include <string>

#include "foretrace/advice_report.h"

namespace foretrace {

/// What bounds a step: the kind of work without which most of it goes away, as the table of
/// ceilings has it, so that the two cannot disagree. Without ceilings what the critical path
/// consists of most.
std::string bound_sentence(const Advice& advice);

}  // namespace foretrace
