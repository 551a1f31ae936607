#include "foretrace/answer/advice.h"

#include <algorithm>

namespace foretrace {

bool Advice::reaches_target() const {
  if (!target || target->holds_now || (joint && joint->step_time <= target->step_time)) return true;
  if (curve) return curve->answer.has_value();
  return std::any_of(speed_ups.begin(), speed_ups.end(),
                     [](const SpeedUp& one) { return one.needed.has_value(); }) ||
         std::any_of(suggestions.begin(), suggestions.end(), [&](const Suggestion& one) {
           return one.goal == "time" && one.recommended && one.step_time <= target->step_time;
         });
}

}  // namespace foretrace
