#include "ask/check/settled.h"

#include <algorithm>
#include <string_view>

#include "ask/check/job/figures.h"

namespace foretrace {
namespace {

/// Whether a cause is that of one step, which the step time, a median, does not show.
bool is_of_one_step(const CheckCause& cause) {
  constexpr std::string_view kOfOne[] = {kMeanStep, kSlowestStep, kSlowestExcess};
  return std::find(std::begin(kOfOne), std::end(kOfOne), cause.figure) != std::end(kOfOne);
}

}  // namespace

void settle_effects(CheckReport& report) {
  const auto step =
      std::find_if(report.figures.begin(), report.figures.end(),
                   [](const CheckedFigure& figure) { return figure.name == kStepTime; });
  if (step == report.figures.end() || !step->before || !step->after) return;
  Nanoseconds left(*step->after - *step->before);
  const Nanoseconds noise =
      std::max(left - Nanoseconds(step->lower), Nanoseconds(step->upper) - left);
  bool is_told = step->standing >= CheckOutcome::warned && step->lower > 0;
  for (CheckCause& cause : report.causes) {
    if (!cause.effect || is_of_one_step(cause)) continue;
    if (step->lower <= 0) cause.effect.reset();
    left -= cause.effect.value_or(0ns);
    is_told = is_told || cause.effect.value_or(0ns) > 0ns;
  }
  if (is_told && std::chrono::abs(left) > noise) report.left = left;
}

}  // namespace foretrace
