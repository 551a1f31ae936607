#include "foretrace/answer/prediction.h"

namespace foretrace {

std::optional<double> flops_utilization(const StepRates& rates, Nanoseconds step_time) {
  // Below this share, the result would describe the recording rather than the job.
  constexpr double kLeastKnown = 0.5;
  if (rates.flops <= 0 || rates.peak_flops <= 0 || step_time <= 0ns) return std::nullopt;
  if (rates.known_share < kLeastKnown) return std::nullopt;
  return rates.flops / (static_cast<double>(step_time.count()) * 1e-9) / rates.peak_flops;
}

double exposed_communication(const Breakdown& breakdown, Nanoseconds step_time) {
  if (step_time <= 0ns) return 0;
  return static_cast<double>(breakdown.communication.count()) /
         static_cast<double>(step_time.count());
}

}  // namespace foretrace
