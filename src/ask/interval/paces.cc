#include "ask/interval/paces.h"

#include <algorithm>
#include <fmt/core.h>
#include <vector>

#include "base/statistics.h"
#include "base/wording.h"

namespace foretrace {

std::string to_text(const Paces& paces) {
  return fmt::format("{} of the replay at {}, {} at {}", counted(paces.fast_steps, "step"),
                     to_text(paces.fast), paces.slow_steps, to_text(paces.slow));
}

std::optional<Paces> two_paces(const StepTimes& replayed, const StepTimes& recorded) {
  constexpr double kTimesRecorded = 2;
  constexpr std::size_t kFewest = 2, kLeastPart = 5;  // One in so many steps.
  if (replayed.counted.size() < 2 * kFewest) return {};
  if (replayed.spread <= std::max(kWideSpread, kTimesRecorded * recorded.spread)) return {};
  std::vector<Nanoseconds> times = replayed.counted;
  std::sort(times.begin(), times.end());
  std::size_t split = 1;
  for (std::size_t i = 2; i < times.size(); ++i) {
    if (times[i] - times[i - 1] > times[split] - times[split - 1]) split = i;
  }
  const std::size_t rest = times.size() - split;
  const std::size_t fewer = std::min(split, rest);
  if (fewer < kFewest || kLeastPart * fewer < times.size()) return {};
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(split);
  return Paces{median(std::vector<Nanoseconds>(times.begin(), middle)),
               median(std::vector<Nanoseconds>(middle, times.end())), split, rest};
}

}  // namespace foretrace
