#include "foretrace/storage.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <functional>

#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Returns (1 - e^-k) / k.
double mean_survival(double k) { return k < 1e-9 ? 1 - k / 2 : -std::expm1(-k) / k; }

/// Returns the integral from 0 to 1 of (1 - y)^n e^-ky dy, by Simpson's rule with y = t^2, so that
/// steps are fine where the integrand falls fast.
double survival_moment(double n, double k) {
  constexpr int kSteps = 512;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double t = static_cast<double>(i) / kSteps;
    const double y = t * t;
    const double weight = i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2;
    const double left = n == 0 ? 1 : std::pow(1 - y, n);
    sum += weight * left * std::exp(-k * y) * 2 * t;
  }
  return sum / (3 * kSteps);
}

double misses_of_jobs(double k, double jobs) {
  if (jobs == 1) return 1 - mean_survival(k) * mean_survival(k);
  return k * survival_moment(jobs, k) * (1 + survival_moment(jobs - 1, k));
}

double misses_of_servers(double k, double servers) {
  const double survives = mean_survival(k);
  const double evicted = 1 - (1 - 1 / servers) * std::exp(-k);
  return 1 - survives * survives / servers / evicted;
}

/// Returns the greatest m in [0, 1] with m = misses(m). A cache without misses evicts nothing, so m
/// = 0 is always a solution; repeated epochs settle at the other one. `misses(m) - m` is positive
/// below that solution and negative above.
double fixed_point(const std::function<double(double)>& misses) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (misses(middle) > middle ? low : high) = middle;
  }
  return (low + high) / 2;
}

double page_cache_misses(const CachedSet& set) {
  const auto jobs = static_cast<double>(set.jobs);
  const auto servers = static_cast<double>(set.servers);
  if (jobs > 1 && servers > 1) {
    throw Error(
        "servers: must be 1 with several jobs, because cache page_cache does not model both");
  }
  if (set.cached <= 0) return 1;
  if (set.cached >= 1) return 0;
  return fixed_point([&](double m) {
    return servers > 1 ? misses_of_servers(m / (servers * set.cached), servers)
                       : misses_of_jobs(jobs * m / set.cached, jobs);
  });
}

double lru_misses(const CachedSet& set) {
  if (set.jobs > 1 || set.servers > 1) {
    throw Error(
        "cache: must not be lru with several jobs or servers, because that case is not modelled; "
        "use another cache");
  }
  const double missing = 1 - set.cached;
  return missing <= 0 ? 0 : missing - missing * std::log(missing);
}

ItemShares partitioned(const CachedSet& set) {
  const auto servers = static_cast<double>(set.servers);
  const double anywhere = std::min(1.0, servers * set.cached);
  return {anywhere / servers, anywhere * (1 - 1 / servers), 1 - anywhere};
}

double read_rate(std::string_view text, const std::string& row) {
  const auto value = parse_number<double>(text);
  if (!value || !(*value > 0 && *value < 1e15)) {
    throw Error(fmt::format(
        "must be rows of cores and samples a second such as \"3:2100\", got \"{}\"", row));
  }
  return *value;
}

}  // namespace

const std::vector<std::string_view>& cache_policies() {
  static const std::vector<std::string_view> names = {"none", "minio", "page_cache", "lru",
                                                      "partitioned"};
  return names;
}

ItemShares item_shares(const CachedSet& set) {
  if (set.policy == "partitioned") return partitioned(set);
  double misses = 1;
  if (set.policy == "minio") misses = 1 - std::min(1.0, set.cached);
  if (set.policy == "page_cache") misses = page_cache_misses(set);
  if (set.policy == "lru") misses = lru_misses(set);
  return {1 - misses, 0, misses};
}

double cached_for(CachedSet set, double misses) {
  if (misses >= 1) return 0;
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    set.cached = (low + high) / 2;
    (item_shares(set).disk > misses ? low : high) = set.cached;
  }
  return high;
}

PrepRates::PrepRates(const std::vector<std::string>& rows) {
  for (const std::string& row : rows) {
    const std::size_t colon = row.find(':');
    if (colon == std::string::npos) read_rate("", row);
    const Row read{read_rate(std::string_view(row).substr(0, colon), row),
                   read_rate(std::string_view(row).substr(colon + 1), row)};
    if (!rows_.empty() && (read.cores <= rows_.back().cores || read.rate < rows_.back().rate)) {
      throw Error(
          fmt::format("must be in ascending order of cores, with rates that do not fall, got "
                      "\"{}\" after \"{}:{}\"",
                      row, to_text(rows_.back().cores), to_text(rows_.back().rate)));
    }
    rows_.push_back(read);
  }
}

double PrepRates::at(double cores) const {
  Row below;
  for (const Row& row : rows_) {
    if (cores <= row.cores) {
      return below.rate +
             (row.rate - below.rate) * (cores - below.cores) / (row.cores - below.cores);
    }
    below = row;
  }
  return below.rate;
}

}  // namespace foretrace
