#pragma once

#include "foretrace/ask/check.h"

namespace foretrace {

/// Makes the effects of causes add up to the change of the step time. Without a slowdown beyond
/// noise no cause has an effect; otherwise `left` is what they do not account for.
void settle_effects(CheckReport& report);

}  // namespace foretrace
