#include "ask/interval/paces.h"

#include <algorithm>
#include <fmt/core.h>
#include <vector>

#include "base/statistics.h"
#include "base/wording.h"

namespace foretrace {
namespace {

/// So few steps have no two paces, but each of them is much of what is known.
constexpr std::size_t kFewPaced = 4;

}  // namespace

std::string to_text(const Paces& paces) {
  if (paces.fast_steps + paces.slow_steps < kFewPaced) {
    return fmt::format("steps of the replay take {} to {}", to_text(paces.fast),
                       to_text(paces.slow));
  }
  return fmt::format("{} of the replay at {}, {} at {}", counted(paces.fast_steps, "step"),
                     to_text(paces.fast), paces.slow_steps, to_text(paces.slow));
}

std::optional<Paces> two_paces(const StepTimes& replayed, const StepTimes& recorded) {
  constexpr double kTimesRecorded = 2;
  constexpr std::size_t kLeastPart = 5;  // One in so many steps.
  if (replayed.counted.size() < 2) return {};
  if (replayed.spread <= std::max(kWideSpread, kTimesRecorded * recorded.spread)) return {};
  std::vector<Nanoseconds> times = replayed.counted;
  std::sort(times.begin(), times.end());
  std::size_t split = 1;
  for (std::size_t i = 2; i < times.size(); ++i) {
    if (times[i] - times[i - 1] > times[split] - times[split - 1]) split = i;
  }
  const std::size_t rest = times.size() - split;
  // The first of several steps may have a head start.
  const std::size_t fewer = std::min(split, rest), fewest = times.size() < kFewPaced ? 1 : 2;
  if (fewer < fewest || kLeastPart * fewer < times.size()) return {};
  if (times.size() < kFewPaced) return Paces{times.front(), times.back(), split, rest};
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(split);
  return Paces{median(std::vector<Nanoseconds>(times.begin(), middle)),
               median(std::vector<Nanoseconds>(middle, times.end())), split, rest};
}

}  // namespace foretrace
