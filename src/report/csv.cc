#include <ostream>

#include "report/registered.h"
#include "report/wording.h"

namespace foretrace {
namespace {

std::string csv_text(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"') all += '"';
    all += c;
  }
  return all + "\"";
}

}  // namespace

void write_csv(const Prediction& prediction, std::ostream& out) {
  std::string uses;
  for (const AppliedStep& step : prediction.steps) uses += (uses.empty() ? "" : "; ") + step.use;
  out << "trace,what_if,measured_ns,baseline_ns,replay_error,predicted_ns,lower_ns,upper_ns,"
         "speedup";
  for (const Share& share : shares(prediction)) {
    out << ",baseline_" << share.name << "_ns,predicted_" << share.name << "_ns";
  }
  out << ",pinned_tasks,unexplained_ns\n";
  out << csv_text(prediction.inputs.empty() ? "" : prediction.inputs.front().path) << ','
      << csv_text(uses) << ',' << prediction.measured.step_time.count() << ','
      << prediction.baseline.step_time.count() << ',' << to_text(prediction.replay_error) << ','
      << prediction.predicted.step_time.count() << ',' << prediction.lower.count() << ','
      << prediction.upper.count() << ',' << to_text(prediction.speedup);
  for (const Share& share : shares(prediction)) {
    out << ',' << share.baseline.count() << ',' << share.predicted.count();
  }
  out << ',' << prediction.unexplained.pinned_tasks << ',' << prediction.unexplained.lag.count()
      << '\n';
}

}  // namespace foretrace
