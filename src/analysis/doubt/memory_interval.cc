#include "analysis/doubt/memory_interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <variant>

#include "analysis/doubt/ledger.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

constexpr std::array kMemoryLedger = {
#define MEMORY_LEDGER(transform, error, outcomes) LedgerEntry{#transform, error, outcomes, {}},
#include "analysis/doubt/memory_ledger.def"
#undef MEMORY_LEDGER
};

/// The joint uncertainty of several kinds of what-if; without outcomes the peak is exact.
struct MemoryUncertainty {
  double squares = 0;
  int outcomes = 0;

  void add(std::string_view kind) {
    const KnownErrors known = known_errors(kMemoryLedger, entry_of(kMemoryLedger, kind));
    if (known.outcomes == 0) return;
    squares += known.squares / known.outcomes;
    outcomes = outcomes == 0 ? known.outcomes : std::min(outcomes, known.outcomes);
  }
};

const MemoryPeak* peak_before(const Prediction& prediction, std::int32_t device) {
  for (const MemoryPeak& peak : prediction.baseline_memory) {
    if (peak.device == device) return &peak;
  }
  return nullptr;
}

/// The sum of the figures with this name, which must be sizes.
Bytes total_size(const Prediction& prediction, std::string_view name) {
  Bytes sum{};
  for (const AppliedStep& step : prediction.steps) {
    for (const Figure& figure : step.figures) {
      const Bytes* const size = std::get_if<Bytes>(&figure.value);
      if (size != nullptr && figure.name == name) sum += *size;
    }
  }
  return sum;
}

}  // namespace

int known_memory_outcomes(std::string_view kind) {
  const LedgerEntry* const entry = entry_of(kMemoryLedger, kind);
  return entry == nullptr ? 0 : entry->outcomes;
}

double student_deviations(int outcomes) {
  // Tables of the distribution, 80 % on both sides together.
  constexpr std::array kFew = {3.078, 1.886, 1.638, 1.533, 1.476, 1.440};
  const auto at = static_cast<std::size_t>(std::max(outcomes, 1)) - 1;
  if (at < kFew.size()) return kFew[at];
  constexpr double kNormal = 1.2816;
  return kNormal * (1 + (kNormal * kNormal + 1) / (4.0 * outcomes));
}

void set_memory_interval(Prediction& prediction) {
  MemoryUncertainty uncertainty;
  for (const std::string& kind : kinds_of(prediction.steps)) uncertainty.add(kind);
  if (uncertainty.outcomes == 0) return;
  // The most memory that what-ifs may need but could not count.
  const Bytes uncounted = total_size(prediction, "weight_casts_at_most");
  // Blocks of unknown use may shrink to half, but no further.
  const bool may_halve = total_size(prediction, "not_halved") > Bytes{};
  const double off = 1 + student_deviations(uncertainty.outcomes) * std::sqrt(uncertainty.squares);
  for (MemoryPeak& peak : prediction.predicted_memory) {
    if (may_halve) {
      peak.lower_allocated = Bytes{peak.peak_allocated.count / 2};
      peak.upper_allocated = peak.peak_allocated;
      continue;
    }
    const MemoryPeak* const before = peak_before(prediction, peak.device);
    if (before != nullptr && before->peak_allocated == peak.peak_allocated) continue;
    const auto bytes = static_cast<double>(peak.peak_allocated.count);
    peak.lower_allocated = Bytes{static_cast<std::int64_t>(std::llround(bytes / off))};
    const double upper = std::min(bytes * off + static_cast<double>(uncounted.count), 9e18);
    peak.upper_allocated = Bytes{static_cast<std::int64_t>(std::llround(upper))};
  }
}

}  // namespace foretrace
