// Figures that follow from others in an answer.

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_text.h"
#include "base/numbers/scaling.h"
#include "foretrace/answer/advice.h"
#include "foretrace/answer/applicability.h"
#include "foretrace/answer/collective.h"
#include "foretrace/answer/diagnosis.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/answer/plan.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/serving.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/answer/validation.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

template <class PeakOf>
std::optional<Bytes> greatest_of(const std::vector<MemoryPeak>& peaks, PeaksOf counted,
                                 const PeakOf& peak_of) {
  std::optional<Bytes> most;
  for (const MemoryPeak& peak : peaks) {
    if (peak.device < 0 && counted == PeaksOf::devices) continue;
    const std::optional<Bytes> one = peak_of(peak);
    if (one) most = std::max(most.value_or(*one), *one);
  }
  return most;
}

}  // namespace

bool Advice::reaches_target() const {
  if (!target || target->holds_now || (joint && joint->step_time <= target->step_time)) return true;
  if (curve) return curve->answer.has_value();
  return std::any_of(speed_ups.begin(), speed_ups.end(),
                     [](const SpeedUp& one) { return one.needed.has_value(); }) ||
         std::any_of(suggestions.begin(), suggestions.end(), [&](const Suggestion& one) {
           return one.goal == "time" && one.recommended && one.step_time <= target->step_time;
         });
}

std::string to_text(const Applicability& applies) {
  if (applies.share >= 1) return {};
  if (applies.share <= 0) return "does not apply: " + applies.why_not;
  const bool rounds_to_none = applies.share < 0.0005;
  return fmt::format("applies to {}: {}",
                     rounds_to_none ? "less than 0.1 %" : to_share(applies.share), applies.why_not);
}

std::optional<double> CollectiveRow::error() const {
  if (!measured || measured->count() == 0) return std::nullopt;
  return static_cast<double>((time - *measured).count()) / static_cast<double>(measured->count());
}

std::optional<double> RecordedCollectives::error() const {
  if (!priced || !transfer || transfer->typical <= 0ns) return std::nullopt;
  return static_cast<double>((*priced - transfer->typical).count()) /
         static_cast<double>(transfer->typical.count());
}

std::size_t Diagnosis::count(Severity severity) const {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& finding) { return finding.severity == severity; }));
}

std::optional<Bytes> greatest_allocated(const std::vector<MemoryPeak>& peaks, PeaksOf counted) {
  return greatest_of(peaks, counted, [](const MemoryPeak& peak) { return peak.peak_allocated; });
}

std::optional<Bytes> greatest_reserved(const std::vector<MemoryPeak>& peaks, PeaksOf counted) {
  return greatest_of(peaks, counted, [](const MemoryPeak& peak) { return peak.peak_reserved; });
}

bool is_reproduced(const GeneratedRow& row) {
  if (row.ran_out || row.runs_out) return row.ran_out == row.runs_out;
  return row.measured && row.lower <= *row.measured && *row.measured <= row.upper;
}

std::optional<double> flops_utilization(const StepRates& rates, Nanoseconds step_time) {
  // Below this share, the result would describe the recording rather than the job.
  constexpr double kMinKnown = 0.5;
  if (rates.flops <= 0 || rates.peak_flops <= 0 || step_time <= 0ns) return std::nullopt;
  if (rates.known_share < kMinKnown) return std::nullopt;
  return rates.flops / (static_cast<double>(step_time.count()) * 1e-9) / rates.peak_flops;
}

double exposed_communication(const Breakdown& breakdown, Nanoseconds step_time) {
  if (step_time <= 0ns) return 0;
  return static_cast<double>(breakdown.communication.count()) /
         static_cast<double>(step_time.count());
}

const LatencyFigure* ServingPoint::latency(const std::string& name) const {
  const auto found = std::ranges::find(latencies, name, &LatencyFigure::name);
  return found == latencies.end() ? nullptr : &*found;
}

std::string plain_value(const std::string& value) {
  const nlohmann::json json = try_parse_json<nlohmann::json>(value);
  if (json.is_number_float()) return to_text(json.get<double>());
  return json.is_string() ? json.get<std::string>() : value;
}

bool Curve::satisfies(const SweepPoint& point) const {
  return until().empty() || (!point.verdicts.empty() && point.verdicts.front() == "holds");
}

double SideRemoval::excess() const {
  if (recorded <= 0ns) return 0;
  return static_cast<double>((remaining - (recorded - alone)).count()) /
         static_cast<double>(recorded.count());
}

std::vector<std::string_view> ValidatedRank::broken() const {
  std::vector<std::string_view> names;
  if (!against.empty()) return names;  // Only the errors were asked for.
  const auto check = [&](bool holds, std::string_view name) {
    if (!holds) names.push_back(name);
  };
  check(validation.scale_holds, "scale");
  check(validation.neutral_holds, "neutral");
  check(validation.shrink_holds, "shrink");
  check(validation.export_holds, "export");
  check(validation.without.device.holds(), "without device");
  check(validation.without.host.holds(), "without host");
  return names;
}

Nanoseconds PathShares::total() const {
  return std::accumulate(parts.begin(), parts.end(), Nanoseconds(0));
}

double PathShares::share(PathPart part) const {
  return ratio(parts[static_cast<std::size_t>(part)], total());
}

/// Host work and launches compete with the other parts as one; if they win, the larger of the two
/// is returned.
PathPart PathShares::largest() const {
  const auto most =
      static_cast<std::size_t>(std::max_element(parts.begin(), parts.end()) - parts.begin());
  const Nanoseconds host = parts[static_cast<std::size_t>(PathPart::host)];
  const Nanoseconds launches = parts[static_cast<std::size_t>(PathPart::launches)];
  if (host + launches <= parts[most]) return static_cast<PathPart>(most);
  return host >= launches ? PathPart::host : PathPart::launches;
}

}  // namespace foretrace
