// Typical delays: what a launch, a pair of kernels in line and an event cost on this machine, from those starts that only
// one cause explains. They are what a start may lag behind its cause without being unexplained, and what a dependency
// costs that did not bind when it was recorded.

#include <algorithm>

#include "infer/draft.h"

namespace foretrace::infer_detail {
namespace {

struct Spread {
  std::int64_t median = 0;
  std::int64_t fence = 0;  ///< Tukey's: upper quartile + 1.5 x the distance of the quartiles.
};

Spread spread_of(std::vector<std::int64_t>& samples) {
  const auto at = [&](std::size_t i) {
    std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(i),
                     samples.end());
    return samples[i];
  };
  const std::int64_t low = at(samples.size() / 4);
  const std::int64_t median = at(samples.size() / 2);
  const std::int64_t high = at(samples.size() * 3 / 4);
  return {median, high + (high - low) * 3 / 2};
}

constexpr std::size_t kEnough = 8;

}  // namespace

void measure_typical_delays(Draft& draft) {
  std::vector<std::int64_t> launches, gaps;
  for (const auto& [begin, end] : draft.streams) {
    for (std::size_t i = begin; i < end; ++i) {
      const DeviceEvent& event = draft.events[i];
      const Call* call = draft.call_of(event);
      const bool idle = i == begin || (call && draft.events[i - 1].finish <= call->start);
      if (call && idle && event.start >= call->start) launches.push_back(event.start - call->start);
      if (i == begin) continue;
      const std::int64_t ready = draft.events[i - 1].finish;
      // The launch was done long before: only the one in front held it.
      if (call && call->finish + 10'000 < ready && event.start >= ready) {
        gaps.push_back(event.start - ready);
      }
    }
  }
  Typical& typical = draft.typical;
  const std::int64_t tick = draft.trace.tick_ns;
  if (launches.size() >= kEnough) {
    const Spread spread = spread_of(launches);
    typical.launch = std::clamp<std::int64_t>(spread.median, 1000, 50'000);
    typical.launch_fence =
        std::clamp(spread.fence, typical.launch + 5000 + tick, std::int64_t{100'000});
  }
  if (gaps.size() >= kEnough) {
    const Spread spread = spread_of(gaps);
    typical.gap = std::clamp<std::int64_t>(spread.median, 0, 20'000);
    typical.gap_fence = std::clamp(spread.fence, typical.gap + 2000 + tick, std::int64_t{50'000});
  }
}

}  // namespace foretrace::infer_detail
