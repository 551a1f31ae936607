#pragma once

#include <string>

#include "foretrace/answer/advice.h"

namespace foretrace {

/// "the host", "the device", "input" ...
std::string bound_name(PathPart part);

/// Returns a sentence that names what bounds a step, Advice::bound.
std::string bound_sentence(const Advice& advice);

}  // namespace foretrace
