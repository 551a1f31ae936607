#pragma once

// The share of their outputs that SGLang expects of running requests (srt/managers/scheduler.py).

#include <algorithm>
#include <cstdint>

namespace foretrace::serve {

constexpr double kStartRatio = .7, kMinRatio = .14 * kStartRatio, kRatioSteps = 600;
constexpr std::int64_t kRetractSteps = 20;

/// The share after `steps` decoding steps from `ratio` on.
inline double decayed_ratio(double ratio, std::int64_t steps, double scale = 1) {
  const double least = std::min(1., kStartRatio * scale) / kStartRatio * kMinRatio;
  const double start = std::min(1., kStartRatio * scale);
  return std::max(least, ratio - (start - least) / kRatioSteps * static_cast<double>(steps));
}

/// The share after requests were retracted, when `kept` requests remain.
inline double retracted_ratio(std::int64_t produced, std::int64_t kept, std::int64_t outputs) {
  return std::min(
      1., static_cast<double>(produced + kRetractSteps * kept) / static_cast<double>(outputs + 1));
}

}  // namespace foretrace::serve
