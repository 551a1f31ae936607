#pragma once

// A small answer with round figures, for tests of reports.

#include "foretrace/answer/prediction.h"

namespace foretrace {

/// Three steps; the first one does not count.
inline StepTimes sample_times(Nanoseconds first, Nanoseconds other) {
  return {.each = {first, other, other},
          .counted = {other, other},
          .step_time = other,
          .mean = other,
          .fastest = other,
          .slowest = other,
          .first = 1};
}

inline Prediction sample_prediction() {
  Prediction prediction;
  prediction.inputs = {{"job.json.gz", "kineto", "ab12"}};
  prediction.scenario_json = R"({"version":1,"transforms":[{"use":"amp"}]})";
  prediction.measured = sample_times(110ms, 100ms);
  prediction.window = 500ms;
  prediction.has_steps = true;
  prediction.baseline = sample_times(110ms, 100ms);
  prediction.replay_error = 0.0001;
  prediction.unexplained.pinned_tasks = 1;
  prediction.unexplained.lag = 5ms;
  prediction.unexplained.window = 500ms;
  prediction.tasks = 53021;
  prediction.dependencies[0] = 10;
  prediction.dependencies[2] = 2;
  prediction.baseline_breakdown = {.compute = 80ms, .copy = 5ms, .host = 15ms};
  prediction.predicted = sample_times(60ms, 50ms);
  prediction.lower = 45ms;
  prediction.upper = 55ms;
  prediction.interval_source = "steps in the trace vary by -1.0 % to +1.0 %";
  prediction.predicted_breakdown = {.compute = 30ms, .copy = 5ms, .host = 15ms};
  prediction.baseline_memory = {{.device = 0,
                                 .peak_allocated = Bytes{2'000'000'000},
                                 .peak_reserved = Bytes{3'000'000'000},
                                 .recorded_reserved = Bytes{3'100'000'000}}};
  prediction.predicted_memory = {
      {.device = 0, .peak_allocated = Bytes{1'000'000'000}, .peak_reserved = Bytes{1'200'000'000}}};
  prediction.assumptions = {"kernels gain as in the paper"};
  prediction.speedup = 2;
  prediction.steps = {
      {"amp", "412 kernels faster", false, {{"saved_bytes", Bytes{1'000'000'000}}}}};
  prediction.notes.add(Severity::warning, "odd records", "record 7", 3);
  return prediction;
}

}  // namespace foretrace
