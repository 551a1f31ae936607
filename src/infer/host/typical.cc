// Typical delays: the cost of a launch, of consecutive kernels and of an event on this machine,
// from starts that only one cause explains. A start may lag its cause by this much without being
// unexplained, and a dependency that did not bind when recorded costs this much.

#include <algorithm>
#include <numeric>

#include "base/statistics.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

struct Spread {
  std::int64_t median = 0;
  /// The greater of Tukey's fence (upper quartile + 1.5 x the distance of the quartiles) and the
  /// 95th percentile.
  std::int64_t fence = 0;
};

Spread spread_of(std::vector<std::int64_t>& samples) {
  const auto at = [&](std::size_t percent) { return upper_quantile(samples, percent); };
  return {at(50), std::max(at(75) + (at(75) - at(25)) * 3 / 2, at(95))};
}

/// So many samples tell what is typical. Chosen.
constexpr std::size_t kEnough = 8;

// Times are in ns. The limits keep a few odd samples from making a cause of everything: chosen
// around what CUDA is known for (recalled: a launch reaches an idle device in 3 to 10 us, and
// kernels in line follow within 1 to 2 us).

/// A kernel whose launch returned this long before its turn waited for the one in front alone.
constexpr std::int64_t kLaunchedLongBefore = 10'000;

struct Limits {
  std::int64_t most = 0;   ///< The greatest typical value.
  std::int64_t fence = 0;  ///< The fence, or twice the typical value where that is more.
};
/// A slow driver or a virtual device takes long for each launch.
constexpr Limits kOnIdleDevice = {.most = 10'000'000, .fence = 50'000};
/// More on an idle stream may be a wait for another stream.
constexpr Limits kOnIdleStream = {.most = 50'000, .fence = 100'000};
constexpr std::int64_t kLeastLaunch = 1'000;
/// A launch explains a start at least this far beyond what is typical.
constexpr std::int64_t kLaunchJitter = 5'000;

constexpr std::int64_t kMostGap = 20'000;
constexpr std::int64_t kGapJitter = 2'000;

struct Samples {
  std::vector<std::int64_t> idle_device;  ///< Launch to start, nothing else running on the device.
  std::vector<std::int64_t> idle_stream;  ///< Launch to start, nothing else running on the stream.
  std::vector<std::int64_t> gaps;  ///< Finish to start of kernels in line, launched long before.
};

Samples take_samples(const Records& records) {
  Samples samples;
  std::vector<std::uint32_t> order(records.events.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(records.events[a].start, a) < std::pair(records.events[b].start, b);
  });
  std::int64_t busy = 0;  // Until when any stream is.
  for (const std::uint32_t i : order) {
    const DeviceEvent& event = records.events[i];
    const Call* call = records.call_of(event);
    const bool first = i == records.streams[event.stream].first;
    const std::int64_t ready = first ? 0 : records.events[i - 1].finish;
    if (call && event.start >= call->start && ready <= call->start) {
      samples.idle_stream.push_back(event.start - call->start);
      if (busy <= call->start) samples.idle_device.push_back(event.start - call->start);
    }
    if (call && !first && call->finish + kLaunchedLongBefore < ready && event.start >= ready) {
      samples.gaps.push_back(event.start - ready);
    }
    busy = std::max(busy, event.finish);
  }
  return samples;
}

}  // namespace

Typical measure_typical_delays(const Records& records) {
  Samples samples = take_samples(records);
  Typical typical;
  const std::int64_t tick = records.trace.tick_ns;
  // Only an idle device shows a long latency to be one; on an idle stream it may be a wait for
  // another.
  const bool idle = samples.idle_device.size() >= kEnough;
  std::vector<std::int64_t>& launches = idle ? samples.idle_device : samples.idle_stream;
  if (launches.size() >= kEnough) {
    const Spread spread = spread_of(launches);
    const Limits limits = idle ? kOnIdleDevice : kOnIdleStream;
    typical.launch = std::clamp<std::int64_t>(spread.median, kLeastLaunch, limits.most);
    typical.launch_fence = std::clamp(spread.fence, typical.launch + kLaunchJitter + tick,
                                      std::max(2 * typical.launch, limits.fence));
  }
  if (samples.gaps.size() >= kEnough) {
    const Spread spread = spread_of(samples.gaps);
    typical.gap = std::clamp<std::int64_t>(spread.median, 0, kMostGap);
    typical.gap_fence = std::clamp(spread.fence, typical.gap + kGapJitter + tick, kMostGap + tick);
  }
  return typical;
}

}  // namespace foretrace::infer_detail
