// Typical delays on this machine: of a launch, between consecutive kernels, and after an event,
// measured on starts that only one cause explains. A start may lag its cause by this much without
// being unexplained, and a dependency that did not bind in the recording gets this lag.

#include <algorithm>
#include <numeric>

#include "base/statistics.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

struct Spread {
  std::int64_t median = 0;
  /// The greater of Tukey's fence (upper quartile + 1.5 x the interquartile range) and the 95th
  /// percentile.
  std::int64_t fence = 0;
};

Spread spread_of(std::vector<std::int64_t>& samples) {
  const auto at = [&](std::size_t percent) { return upper_quantile(samples, percent); };
  return {at(50), std::max(at(75) + (at(75) - at(25)) * 3 / 2, at(95))};
}

/// Number of samples needed for a typical value. Chosen.
constexpr std::size_t kEnoughSamples = 8;

// Times are in ns. The limits keep a few odd samples from explaining every start: chosen around the
// known behaviour of CUDA (recalled: a launch reaches an idle device in 3 to 10 us, and consecutive
// kernels follow within 1 to 2 us).

/// A kernel whose launch returned this long before its turn waited only for its predecessor.
constexpr std::int64_t kLaunchedLongBefore = 10'000;

struct Limits {
  std::int64_t most = 0;   ///< The greatest typical value.
  std::int64_t fence = 0;  ///< Limit of the fence, unless twice the typical value is more.
};
/// Large, because a slow driver or a virtual device takes long for each launch.
constexpr Limits kOnIdleDevice = {.most = 10'000'000, .fence = 50'000};
/// Small, because a longer delay on an idle stream may be a wait for another stream.
constexpr Limits kOnIdleStream = {.most = 50'000, .fence = 100'000};
constexpr std::int64_t kMinLaunch = 1'000;
/// A launch explains a start up to at least this much beyond the typical delay.
constexpr std::int64_t kLaunchJitter = 5'000;

constexpr std::int64_t kMaxGap = 20'000;
constexpr std::int64_t kGapJitter = 2'000;

struct Samples {
  std::vector<std::int64_t> idle_device;  ///< From launch to start, with the device idle.
  std::vector<std::int64_t> idle_stream;  ///< From launch to start, with the stream idle.
  /// From finish to start of consecutive kernels, launched long before.
  std::vector<std::int64_t> gaps;
};

Samples take_samples(const Records& records) {
  Samples samples;
  std::vector<std::uint32_t> order(records.events.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(records.events[a].start, a) < std::pair(records.events[b].start, b);
  });
  std::int64_t busy = 0;  // Latest finish on any stream.
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

TypicalDelays measure_typical_delays(const Records& records) {
  Samples samples = take_samples(records);
  TypicalDelays typical;
  const std::int64_t tick = records.trace.tick_ns;
  // A long delay is a launch latency for certain only on an idle device; on an idle stream it may
  // be a wait for another stream.
  const bool idle = samples.idle_device.size() >= kEnoughSamples;
  std::vector<std::int64_t>& launches = idle ? samples.idle_device : samples.idle_stream;
  if (launches.size() >= kEnoughSamples) {
    const Spread spread = spread_of(launches);
    const Limits limits = idle ? kOnIdleDevice : kOnIdleStream;
    typical.launch = std::clamp<std::int64_t>(spread.median, kMinLaunch, limits.most);
    typical.launch_fence = std::clamp(spread.fence, typical.launch + kLaunchJitter + tick,
                                      std::max(2 * typical.launch, limits.fence));
  }
  if (samples.gaps.size() >= kEnoughSamples) {
    const Spread spread = spread_of(samples.gaps);
    typical.gap = std::clamp<std::int64_t>(spread.median, 0, kMaxGap);
    typical.gap_fence = std::clamp(spread.fence, typical.gap + kGapJitter + tick, kMaxGap + tick);
  }
  return typical;
}

}  // namespace foretrace::infer_detail
