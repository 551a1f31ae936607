#include <optional>
#include <ostream>

#include "base/shown.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/answer/prediction.h"
#include "question/words/wording.h"

namespace foretrace {

namespace {

/// Writes the peaks of the fullest device, or of the host; empty cells if memory is not recorded.
void write_memory(const Prediction& prediction, std::ostream& out) {
  const auto write = [&](const std::optional<Bytes>& peak) {
    out << ',';
    if (peak) out << peak->count;
  };
  for (const auto greatest : {greatest_allocated, greatest_reserved}) {
    write(greatest(prediction.baseline_memory, PeaksOf::devices_and_host));
    write(greatest(prediction.predicted_memory, PeaksOf::devices_and_host));
  }
  std::size_t refused = 0;
  for (const MemoryPeak& peak : prediction.predicted_memory) refused += peak.out_of_memory ? 1 : 0;
  out << ',' << refused;
}

/// Writes the rates; unknown ones are empty cells.
void write_rates(const Prediction& prediction, std::ostream& out) {
  const StepRates& before = prediction.baseline_rates;
  const StepRates& after = prediction.predicted_rates;
  const Nanoseconds now = prediction.baseline.step_time, then = prediction.predicted.step_time;
  const auto write = [&](const std::optional<double>& value) {
    out << ',';
    if (value) out << to_text(*value);
  };
  const auto per_second = [](double count, Nanoseconds step) -> std::optional<double> {
    if (count <= 0 || step <= 0ns) return std::nullopt;
    return count * 1e9 / static_cast<double>(step.count());
  };
  write(flops_utilization(before, now));
  write(flops_utilization(after, then));
  write(per_second(before.samples, now));
  write(per_second(after.samples, then));
  write(per_second(before.tokens, now));
  write(per_second(after.tokens, then));
  write(exposed_communication(prediction.baseline_breakdown, now));
  write(exposed_communication(prediction.predicted_breakdown, then));
}

}  // namespace

void write_csv(const Prediction& prediction, std::ostream& out) {
  std::string uses;
  for (const AppliedStep& step : prediction.steps) uses += (uses.empty() ? "" : "; ") + step.use;
  out << "trace,what_if,measured_ns,baseline_ns,replay_error,predicted_ns,lower_ns,upper_ns,"
         "speedup";
  for (const StepPart& part : step_parts(prediction)) {
    out << ",baseline_" << part.name << "_ns,predicted_" << part.name << "_ns";
  }
  out << ",pinned_tasks,unexplained_ns,baseline_peak_allocated_bytes,predicted_peak_allocated_"
         "bytes,"
         "baseline_peak_reserved_bytes,predicted_peak_reserved_bytes,out_of_memory,trust,baseline_"
         "mfu,predicted_mfu,baseline_samples_per_"
         "second,predicted_samples_per_second,baseline_tokens_per_second,predicted_tokens_per_"
         "second,"
         "baseline_exposed_communication,predicted_exposed_communication\n";
  out << csv_text(prediction.inputs.empty() ? "" : prediction.inputs.front().path) << ','
      << csv_text(uses) << ',' << prediction.measured.step_time.count() << ','
      << prediction.baseline.step_time.count() << ',' << to_text(prediction.replay_error) << ','
      << prediction.predicted.step_time.count() << ',' << prediction.lower.count() << ','
      << prediction.upper.count() << ',' << to_text(prediction.speedup);
  for (const StepPart& part : step_parts(prediction)) {
    out << ',' << part.baseline.count() << ',' << part.predicted.count();
  }
  out << ',' << prediction.unexplained.pinned_tasks << ',' << prediction.unexplained.lag.count();
  write_memory(prediction, out);
  out << ',' << to_string(prediction.trust.grade());
  write_rates(prediction, out);
  out << '\n';
}

}  // namespace foretrace
