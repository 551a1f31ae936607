#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/statistics.h"
#include "question/check/job/kernels.h"
#include "question/check/judge.h"

namespace foretrace {
namespace {

/// With fewer matching kernels, the usual change is unknown.
constexpr std::size_t kMinCompared = 5;
/// Greatest weight of one kernel, as a share of all work: no kernel alone decides the typical
/// slowdown.
constexpr double kMaxWeight = 0.1;
/// Standard deviation of a normal distribution per median absolute deviation: 1 / 0.6745.
constexpr double kDeviationsOfMedian = 1.4826;
/// Noise assumed if a recording does not show how much its kernels vary, as with a single step.
constexpr double kAssumedKernelNoise = 0.03;

struct KernelPair {
  std::uint32_t before = 0, now = 0;
  double work = 0;   ///< Nanoseconds in a step, before.
  double ratio = 1;  ///< now / before
};

double as_number(Nanoseconds time) { return static_cast<double>(time.count()); }

std::vector<KernelPair> kernel_pairs(const std::vector<KernelTimes>& before,
                                     const std::vector<KernelTimes>& now) {
  std::unordered_map<std::string_view, std::uint32_t> old;
  for (std::uint32_t i = 0; i < before.size(); ++i) old.try_emplace(before[i].key, i);
  std::vector<KernelPair> pairs;
  for (std::uint32_t i = 0; i < now.size(); ++i) {
    const auto found = old.find(now[i].key);
    if (found == old.end() || now[i].each <= 0ns) continue;
    const KernelTimes& was = before[found->second];
    if (was.each > 0ns && was.count > 0)
      pairs.push_back({found->second, i, as_number(was.each) * static_cast<double>(was.count),
                       as_number(now[i].each) / as_number(was.each)});
  }
  return pairs;
}

double total_work(const std::vector<KernelPair>& pairs) {
  double all = 0;
  for (const KernelPair& pair : pairs) all += pair.work;
  return all;
}

/// Median of `ratios`, each weighted by its work, where no kernel weighs more than kMaxWeight of
/// `all`.
double typical_ratio(std::vector<std::pair<double, double>> ratios, double all) {
  for (auto& [ratio, work] : ratios) work = std::min(work, kMaxWeight * all);
  return weighted_median(std::move(ratios));
}

double pace_of(const std::vector<KernelPair>& pairs) {
  if (pairs.size() < kMinCompared) return 1;
  std::vector<std::pair<double, double>> ratios;
  for (const KernelPair& pair : pairs) ratios.emplace_back(pair.ratio, pair.work);
  return typical_ratio(std::move(ratios), total_work(pairs));
}

/// Scatter of the kernels around the pace: the standard deviation of a normal distribution with the
/// same median distance.
double scatter(const std::vector<KernelPair>& pairs, double pace) {
  if (pairs.size() < kMinCompared) return 0;
  std::vector<double> off;
  for (const KernelPair& pair : pairs) off.push_back(std::abs(pair.ratio / pace - 1));
  return kDeviationsOfMedian * median(std::move(off));
}

/// Half the range of the steps of a recording, as a share of the kernel's time.
double own_noise(const KernelTimes& kernel) {
  if (kernel.each <= 0ns) return 0;
  return as_number(kernel.most - kernel.least) / 2 / as_number(kernel.each);
}

/// The standard deviation of several recordings, as a share of their mean.
double run_noise(const KernelTimes& kernel) {
  const auto [mean, deviation] = sample_of(kernel.runs);
  return mean > 0 ? deviation / mean : 0;
}

/// Noise of a recorder that counts whole microseconds: it is off by 0.41 of one in each difference
/// of two readings (the standard deviation), and by less in the mean of many.
double tick_noise(const std::vector<KernelTimes>& kernels, const KernelTimes& kernel) {
  constexpr std::int64_t kTick = 1000;
  const bool is_coarse = std::all_of(kernels.begin(), kernels.end(), [](const KernelTimes& any) {
    // Rounding down lost up to `count` of the sum.
    const std::int64_t least = any.each.count() * any.count;
    return (least + any.count - 1) / kTick * kTick >= least;
  });
  if (!is_coarse || kernel.each <= 0ns) return 0;
  return 0.41 * kTick / as_number(kernel.each) /
         std::sqrt(static_cast<double>(std::max<std::int64_t>(1, kernel.count)));
}

bool varies(const std::vector<KernelTimes>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [](const KernelTimes& kernel) { return kernel.most > kernel.least; });
}

Nanoseconds most_of_runs(const KernelTimes& kernel) {
  Nanoseconds most = kernel.most;
  for (const std::int64_t run : kernel.runs) most = std::max(most, Nanoseconds(run));
  return most;
}

}  // namespace

std::vector<SlowerKernel> slower_kernels(const std::vector<KernelTimes>& before,
                                         const std::vector<KernelTimes>& now) {
  const std::vector<KernelPair> pairs = kernel_pairs(before, now);
  const double pace = pace_of(pairs), all = total_work(pairs);
  const double common = scatter(pairs, pace);
  const double assumed = varies(before) && varies(now) ? 0 : kAssumedKernelNoise;
  const double sigmas = std::sqrt(2 * std::log(100.0 * static_cast<double>(pairs.size() + 1)));
  std::vector<SlowerKernel> found;
  for (const KernelPair& pair : pairs) {
    const KernelTimes &was = before[pair.before], &is = now[pair.now];
    const double noise = std::hypot(
        std::hypot(common, std::max(assumed, std::max(own_noise(was), own_noise(is)))),
        std::hypot(run_noise(was), std::max(tick_noise(before, was), tick_noise(now, is))));
    const double ratio = pair.ratio / pace;
    const double added = (ratio - 1) * pace * pair.work;
    if (ratio - 1 < std::max(kMinSlower, sigmas * noise)) continue;
    if (is.least <= scaled(most_of_runs(was), pace)) continue;
    found.push_back({pair.before, pair.now, ratio, Nanoseconds(std::llround(added))});
  }
  std::map<std::string_view, Nanoseconds> of_name;
  for (const SlowerKernel& slower : found) of_name[now[slower.now].name] += slower.added;
  std::erase_if(found, [&](const SlowerKernel& slower) {
    return as_number(of_name[now[slower.now].name]) < kMinShare * pace * all;
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const SlowerKernel& a, const SlowerKernel& b) { return a.added > b.added; });
  return found;
}

double compared_share(const std::vector<KernelTimes>& before, const std::vector<KernelTimes>& now) {
  double all = 0;
  for (const KernelTimes& kernel : before)
    all += as_number(kernel.each) * static_cast<double>(kernel.count);
  return all > 0 ? total_work(kernel_pairs(before, now)) / all : 1;
}

std::vector<std::int64_t> kernel_pace(const std::vector<KernelTimes>& before,
                                      const std::vector<KernelTimes>& now) {
  const std::vector<KernelPair> pairs = kernel_pairs(before, now);
  if (pairs.size() < kMinCompared) return {};
  const std::size_t steps = now[pairs.front().now].of_steps.size();
  std::vector<std::int64_t> paces;
  for (std::size_t step = 0; step < steps; ++step) {
    std::vector<std::pair<double, double>> ratios;
    for (const KernelPair& pair : pairs) {
      const auto each = static_cast<double>(now[pair.now].of_steps[step]);
      if (each > 0) ratios.emplace_back(each / as_number(before[pair.before].each), pair.work);
    }
    if (ratios.size() >= kMinCompared)
      paces.push_back(std::llround(1e6 * typical_ratio(std::move(ratios), total_work(pairs))));
  }
  return paces;
}

}  // namespace foretrace
