#pragma once

// Medians, quantiles and robust means. For an even number of values the name says which rule
// decides:
//
//     values     median   lower_median
//     1 2 9      2        2
//     1 2 4 9    3        2
//
// Use `median` for quantities such as times. `lower_median` is always one of the values: use it for
// counts, and wherever a value that never occurred would mislead. Without values, each returns a
// value-initialized T.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

namespace foretrace {

namespace statistics_detail {
template <class T>
T nth(std::vector<T>& values, std::size_t n) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(n);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}
}  // namespace statistics_detail

/// The value at `percent` of the way from the least to the greatest in sorted order, rounded down:
/// 0 is the least, 50 the lower median, 100 the greatest. Reorders `values`. Takes linear time.
template <class T>
T lower_quantile(std::vector<T>& values, std::size_t percent) {
  if (values.empty()) return T{};
  return statistics_detail::nth(values, (values.size() - 1) * percent / 100);
}

/// The value that has `percent` of all values, rounded down, before it in sorted order; 100 is the
/// greatest. With few values it is above lower_quantile(), so that a fence made of it is no lower
/// than the evidence allows. Reorders `values`. Takes linear time.
template <class T>
T upper_quantile(std::vector<T>& values, std::size_t percent) {
  if (values.empty()) return T{};
  return statistics_detail::nth(values, std::min(values.size() * percent / 100, values.size() - 1));
}

/// The value that has a quarter of all values, rounded down, before it in sorted order.
template <class T>
T lower_quartile(std::vector<T>& values) {
  return upper_quantile(values, 25);
}

/// Interpolates between two values (type 7 of Hyndman and Fan, 1996). `share` is from 0 to 1.
/// REQUIRES: `sorted` is sorted and not empty.
inline double interpolated_quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(low);
  return sorted[low] * (1 - part) + sorted[high] * part;
}

/// For an even number of values, returns the lower of the middle two.
template <class T>
T lower_median(std::vector<T> values) {
  return lower_quantile(values, 50);
}

/// For an even number of values, returns the mean of the middle two; integers are rounded toward
/// the lower.
template <class T>
T median(std::vector<T> values) {
  const T low = lower_quantile(values, 50);
  if (values.size() % 2 == 1 || values.empty()) return low;
  // nth_element left everything from the upper half behind the lower median.
  const T high = *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                                   values.end());
  if constexpr (std::is_arithmetic_v<T>)
    return std::midpoint(low, high);
  else
    return low + (high - low) / 2;
}

/// The least value such that half of all weight lies at or below it; the pairs are value and
/// weight.
template <class Weight>
double weighted_median(std::vector<std::pair<double, Weight>> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  Weight all{}, sum{};
  for (const auto& [value, weight] : values) all += weight;
  for (const auto& [value, weight] : values) {
    if ((sum += weight) * 2 >= all) return value;
  }
  return values.back().first;
}

/// The mean without the lowest and the highest quarter: a few outliers do not change it, and the
/// mean of two values lies between them. REQUIRES: T is an integer or a duration.
template <class T>
T interquartile_mean(std::vector<T> values) {
  if (values.empty()) return T{};
  std::sort(values.begin(), values.end());
  const std::size_t begin = values.size() / 4, end = values.size() - begin;
  T sum{};  // A sum of differences does not overflow.
  for (std::size_t i = begin; i < end; ++i) sum += values[i] - values[begin];
  return values[begin] + sum / static_cast<std::int64_t>(end - begin);
}

/// The expected maximum of `count` standard normal numbers, within 1 % (G. Blom, Statistical
/// Estimates and Transformed Beta-Variables, 1958); 0 for one.
inline double expected_greatest(std::int64_t count) {
  constexpr int kHalvings = 60;
  const auto n = static_cast<double>(count);
  const double share = (n - 0.375) / (n + 0.25);
  double low = 0, high = 10;
  if (count <= 1) return 0;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < share ? low : high) = middle;
  }
  return low;
}

}  // namespace foretrace
