#include "foretrace/answer/generation.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/statistics.h"

namespace foretrace {
namespace {

constexpr std::size_t kMinRanked = 3;  ///< Fewest rows of a group whose order is meaningful.

struct Pair {
  double predicted = 0, measured = 0;
};

/// Rank of each value, from 0; equal values share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double below = 0, equal = 0;
    for (const double other : values) below += other < value, equal += other == value;
    ranks.push_back(below + (equal - 1) / 2);
  }
  return ranks;
}

/// Spearman's rank correlation. Returns nullopt if all values of one side are equal.
std::optional<double> rank_correlation(const std::vector<Pair>& pairs) {
  std::vector<double> predicted, measured;
  for (const Pair& pair : pairs)
    predicted.push_back(pair.predicted), measured.push_back(pair.measured);
  predicted = ranks_of(predicted), measured = ranks_of(measured);
  const double mean = static_cast<double>(pairs.size() - 1) / 2;
  double both = 0, a = 0, b = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    both += (predicted[i] - mean) * (measured[i] - mean);
    a += (predicted[i] - mean) * (predicted[i] - mean);
    b += (measured[i] - mean) * (measured[i] - mean);
  }
  if (a <= 0 || b <= 0) return std::nullopt;
  return both / std::sqrt(a * b);
}

/// How much slower the layout with the best prediction is than the layout that was measured
/// fastest, as a share. Rows with the same prediction are one layout that was measured several
/// times; their median counts. Returns nullopt if there is only one layout.
std::optional<double> regret_of(const std::vector<Pair>& pairs) {
  std::map<double, std::vector<double>> measured;  // By prediction.
  for (const Pair& pair : pairs) measured[pair.predicted].push_back(pair.measured);
  if (measured.size() < 2) return std::nullopt;
  const double chosen = median(measured.begin()->second);
  double best = chosen;
  for (const auto& [predicted, times] : measured) best = std::min(best, median(times));
  return chosen / best - 1;
}

void score_groups(const std::map<std::string, std::vector<Pair>>& groups, GeneratedScore& score) {
  double correlation = 0, ranked = 0, regret = 0, compared = 0;
  for (const auto& [name, pairs] : groups) {
    const auto weight = static_cast<double>(pairs.size());
    if (const auto one = regret_of(pairs)) regret += weight * *one, compared += weight;
    if (pairs.size() < kMinRanked) continue;
    if (const auto one = rank_correlation(pairs)) correlation += weight * *one, ranked += weight;
  }
  if (ranked > 0) score.rank_correlation = correlation / ranked;
  if (compared > 0) score.regret = regret / compared;
}

}  // namespace

std::optional<double> GeneratedRow::error() const {
  if (!measured || measured->count() <= 0) return std::nullopt;
  return static_cast<double>(time.count()) / static_cast<double>(measured->count()) - 1;
}

GeneratedScore score_of(const std::vector<GeneratedRow>& rows,
                        const std::vector<std::pair<std::string, double>>& groups) {
  GeneratedScore score;
  std::vector<double> errors, memory;
  std::map<std::string, std::vector<Pair>> competing;
  double inside = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const GeneratedRow& row = rows[i];
    if (row.is_guessed) continue;
    if (row.ran_out) ++score.ran_out, score.found += row.runs_out;
    if (row.was_fitted || row.ran_out) continue;
    ++score.fitting, score.alarms += row.runs_out;
    const auto error = row.error();
    if (!error) continue;
    errors.push_back(std::abs(*error));
    inside += *row.measured >= row.lower && *row.measured <= row.upper;
    competing[groups[i].first].push_back(
        {static_cast<double>(row.time.count()) / groups[i].second,
         static_cast<double>(row.measured->count()) / groups[i].second});
    if (row.measured_memory.count > 0)
      memory.push_back(std::abs(static_cast<double>(row.allocated.count) /
                                    static_cast<double>(row.measured_memory.count) -
                                1));
  }
  score.rows = errors.size();
  if (errors.empty()) return score;
  for (const double error : errors) score.mean += error / static_cast<double>(errors.size());
  std::ranges::sort(errors);
  score.median = interpolated_quantile(errors, .5);
  score.ninetieth = interpolated_quantile(errors, .9);
  score.in_interval = inside / static_cast<double>(errors.size());
  if (!memory.empty()) score.memory_median = median(memory);
  score_groups(competing, score);
  return score;
}

}  // namespace foretrace
