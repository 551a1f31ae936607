// Limits of figures, and whether a change is beyond its limit.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>

#include "base/parse_number.h"
#include "base/statistics.h"
#include "foretrace/error.h"
#include "foretrace/question/check.h"
#include "question/check/judge.h"

namespace foretrace {
namespace {

/// Limits an amount so that the sum of two still fits 64 bits.
std::int64_t limit_part(std::int64_t amount) {
  constexpr std::int64_t kMax = 4'000'000'000'000'000'000;
  if (amount > kMax) throw Error(fmt::format("must be at most 4 * 10^18, got {}", amount));
  return amount;
}

/// Adds one part of a limit, without its sign.
void add_limit_part(std::string_view part, const FigureEntry& figure, Limit& limit) {
  const auto number_of = [&](std::string_view text) {
    const auto number = parse_number<double>(text);
    if (!number || !(*number >= 0) || *number > 1e12)
      throw Error(fmt::format("must be a number, got '{}'", text));
    return *number;
  };
  if (part.ends_with('%')) {
    const double percent = number_of(part.substr(0, part.size() - 1));
    if (figure.unit == FigureUnit::share) {
      limit.absolute += std::llround(percent * 10'000);
    } else {
      limit.relative += percent / 100;
    }
    return;
  }
  switch (figure.unit) {
    case FigureUnit::time:
      limit.absolute += limit_part(parse_time(part).count());
      break;
    case FigureUnit::bytes:
      limit.absolute += limit_part(parse_bytes(part).count);
      break;
    case FigureUnit::count:
      limit.absolute += std::llround(number_of(part));
      break;
    case FigureUnit::share:
      limit.absolute += std::llround(number_of(part) * 1'000'000);
      break;
  }
}

constexpr std::string_view kLimitForms =
    "must be a limit such as 5%, +10, 200MB, 2ms or 5%+2ms, or off";

/// In how many orders the rank sum of `first` values among `second` others exceeds its least value
/// by u, for each u; all orders are equally likely (Mann and Whitney, 1947): N(u; n, m) = N(u-m;
/// n-1, m) + N(u; n, m-1).
std::vector<double> rank_sum_counts(std::size_t first, std::size_t second) {
  const std::size_t most = first * second;
  std::vector<std::vector<double>> of_n(second + 1, std::vector<double>(most + 1, 0));
  for (std::vector<double>& counts : of_n) counts[0] = 1;
  for (std::size_t n = 1; n <= first; ++n) {
    std::vector<std::vector<double>> next(second + 1, std::vector<double>(most + 1, 0));
    next[0][0] = 1;
    for (std::size_t m = 1; m <= second; ++m) {
      for (std::size_t u = 0; u <= n * m; ++u) {
        next[m][u] = next[m - 1][u] + (u >= m ? of_n[m][u - m] : 0);
      }
    }
    of_n = std::move(next);
  }
  return of_n[second];
}

/// How many of the sorted differences can be cut off at one end while the true shift stays inside
/// with 95 % certainty.
std::size_t differences_cut(std::size_t first, std::size_t second) {
  const std::vector<double> counts = rank_sum_counts(first, second);
  double all = 0;
  for (const double count : counts) all += count;
  double sum = 0;
  std::size_t cut = 0;
  for (; cut < counts.size(); ++cut) {
    sum += counts[cut];
    if (sum > 0.05 * all) break;
  }
  return std::min(cut > 0 ? cut - 1 : 0, (first * second - 1) / 2);
}

/// Steps beyond this number hardly change the interval.
constexpr std::size_t kMaxJudgedSteps = 32;

/// Variation assumed if a recording does not show how much steps vary, the same as for predictions.
constexpr double kAssumedVariation = 0.05;

/// Sorts the values, and picks kMaxJudgedSteps of them at equal distances if there are more.
std::vector<std::int64_t> thinned(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  if (values.size() <= kMaxJudgedSteps) return values;
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < kMaxJudgedSteps; ++i)
    kept.push_back(values[i * (values.size() - 1) / (kMaxJudgedSteps - 1)]);
  return kept;
}

/// Compares each step with the same step before: figures other than times often vary from step to
/// step in the same way in each recording, for instance if gradients are accumulated over several
/// steps.
StepChange step_by_step(const FigureEntry& figure, const std::vector<std::int64_t>& before,
                        const std::vector<std::int64_t>& after) {
  constexpr std::int64_t kAnything = std::numeric_limits<std::int64_t>::max() / 4;
  if (before.size() != after.size()) return {.lower = -kAnything, .upper = kAnything};
  std::vector<std::int64_t> changes;
  for (std::size_t i = 0; i < before.size(); ++i) changes.push_back(after[i] - before[i]);
  const auto [lower, upper] = std::minmax_element(changes.begin(), changes.end());
  return {.change = figure_value(figure, changes), .lower = *lower, .upper = *upper};
}

std::int64_t as_doubt(double amount) {
  constexpr double kMax = 1e18;
  return std::llround(std::min(amount, kMax));
}

/// Uncertainty of a difference of two means (Welch, with the degrees of freedom of the smaller
/// sample).
std::int64_t mean_doubt(const std::vector<std::int64_t>& before,
                        const std::vector<std::int64_t>& after) {
  const auto error = [](const std::vector<std::int64_t>& values) {
    return sample_of(values).deviation / std::sqrt(static_cast<double>(values.size()));
  };
  return as_doubt(std::hypot(error(before), error(after)) *
                  student_95(std::min(before.size(), after.size()) - 1));
}

/// Uncertainty of the greatest value: how far the slowest step of the baseline itself lies from the
/// median.
std::int64_t greatest_doubt(const std::vector<std::int64_t>& before) {
  return *std::max_element(before.begin(), before.end()) - median(before);
}

double limit_amount(const Limit& limit, std::int64_t before) {
  return limit.relative * std::abs(static_cast<double>(before)) +
         static_cast<double>(limit.absolute);
}

}  // namespace

Sample sample_of(const std::vector<std::int64_t>& values) {
  Sample sample;
  const auto count = static_cast<double>(values.size());
  for (const std::int64_t value : values) sample.mean += static_cast<double>(value) / count;
  if (values.size() < 2) return sample;
  double squares = 0;
  for (const std::int64_t value : values) {
    const double off = static_cast<double>(value) - sample.mean;
    squares += off * off;
  }
  sample.deviation = std::sqrt(squares / (count - 1));
  return sample;
}

double student_95(std::size_t freedom) {
  constexpr double kTable[] = {6.31, 2.92, 2.35, 2.13, 2.02, 1.94,
                               1.89, 1.86, 1.83, 1.81, 1.80, 1.78};
  return freedom == 0 ? kTable[0] : freedom > std::size(kTable) ? 1.75 : kTable[freedom - 1];
}

Limit parse_limit(std::string_view text, const FigureEntry& figure) {
  Limit limit;
  limit.text = text;
  limit.is_off = text == "off";
  if (limit.is_off) return limit;
  std::string_view rest = text;
  const char worse = figure.less_is_worse ? '-' : '+';
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
    if (rest[0] != worse)
      throw Error(
          fmt::format("a limit is how much worse the metric may become, so {} takes {}{}, got '{}'",
                      figure.name, worse, rest.substr(1), limit.text));
    rest.remove_prefix(1);
  }
  if (rest.empty()) throw Error(fmt::format("{}, got '{}'", kLimitForms, limit.text));
  if (rest.ends_with('+') || std::count(rest.begin(), rest.end(), '+') > 1)
    throw Error(fmt::format("{}, got '{}'", kLimitForms, limit.text));
  while (!rest.empty()) {
    const std::size_t end = rest.find('+');
    within(kLimitForms, [&] { add_limit_part(rest.substr(0, end), figure, limit); });
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return limit;
}

std::pair<std::string, Limit> parse_named_limit(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    throw Error(fmt::format("must be METRIC:LIMIT, such as step_time:5%, got '{}'", text));
  const FigureEntry& figure = figure_entry(text.substr(0, colon));
  return {std::string(figure.name), parse_limit(text.substr(colon + 1), figure)};
}

std::int64_t figure_value(const FigureEntry& figure, std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  if (figure.value == FigureValue::greatest) return *std::max_element(values.begin(), values.end());
  if (figure.value == FigureValue::mean) return std::llround(sample_of(values).mean);
  const bool counts = figure.unit == FigureUnit::count;
  return counts ? lower_median(std::move(values)) : median(std::move(values));
}

StepChange step_change(const FigureEntry& figure, std::vector<std::int64_t> before,
                       std::vector<std::int64_t> after) {
  StepChange change;
  const std::int64_t was = figure_value(figure, before);
  change.change = figure_value(figure, after) - was;
  change.lower = change.upper = change.change;
  if (before.empty() || after.empty()) return change;
  if (std::min(before.size(), after.size()) < 2) {
    change.is_assumed = figure.is_timed();
    if (!figure.is_timed()) return change;
    const auto slack = static_cast<std::int64_t>(
        std::llround(kAssumedVariation * std::abs(static_cast<double>(was))));
    change.lower -= slack, change.upper += slack;
    return change;
  }
  if (figure.value != FigureValue::median) {
    const std::int64_t doubt =
        figure.value == FigureValue::mean ? mean_doubt(before, after) : greatest_doubt(before);
    change.lower -= doubt, change.upper += doubt;
    return change;
  }
  const StepChange in_turn = step_by_step(figure, before, after);
  before = thinned(std::move(before));
  after = thinned(std::move(after));
  std::vector<std::int64_t> differences;
  for (const std::int64_t now : after) {
    for (const std::int64_t then : before) differences.push_back(now - then);
  }
  std::sort(differences.begin(), differences.end());
  const std::size_t cut = differences_cut(before.size(), after.size());
  change.lower = std::min(change.change, differences[cut]);
  change.upper = std::max(change.change, differences[differences.size() - 1 - cut]);
  if (!figure.is_timed() && in_turn.upper - in_turn.lower < change.upper - change.lower)
    return in_turn;
  return change;
}

CheckOutcome judge(const StepChange& change, bool less_is_worse, std::int64_t before,
                   const Limit& limit) {
  const double most = limit_amount(limit, before);
  const auto at = static_cast<double>(less_is_worse ? -change.change : change.change);
  const auto least = static_cast<double>(less_is_worse ? -change.upper : change.lower);
  const auto greatest = static_cast<double>(less_is_worse ? -change.lower : change.upper);
  if (least > most) return CheckOutcome::failed;
  if (greatest <= most) return CheckOutcome::passed;
  // Steps vary by more than the limit, but nothing shows a change of even a tenth of it.
  if (at <= most && least <= most / 10) return CheckOutcome::passed;
  return CheckOutcome::undecided;
}

}  // namespace foretrace
