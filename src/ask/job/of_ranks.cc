#include "ask/job/of_ranks.h"

#include <algorithm>
#include <string>

#include "ask/job/memory_peaks.h"
#include "foretrace/scaling.h"

namespace foretrace {

void add_recorded_reserved(const Trace& trace, std::vector<MemoryPeak>& peaks) {
  for (MemoryPeak& peak : peaks) {
    std::int64_t most = -1;
    for (const MemoryRecord& record : trace.memory) {
      if (record.device == peak.device) most = std::max(most, record.total_reserved);
    }
    if (most > 0) peak.recorded_reserved = Bytes{most};
  }
}

void add_warnings(const std::vector<Trace>& traces, std::size_t shown, Notes& notes) {
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (i == shown) continue;
    for (const Note& note : traces[i].notes.all()) {
      if (note.severity != Severity::warning) continue;
      notes.add(note.severity, note.text, note.example, note.count);
    }
  }
}

void Fullest::consider(std::int32_t rank, const Prediction& prediction) {
  if (!is_fuller(prediction.predicted_memory, predicted_)) return;
  rank_ = rank;
  now_ = prediction.baseline_memory;
  predicted_ = prediction.predicted_memory;
}

void Fullest::take(Prediction& answer) const {
  if (!is_fuller(predicted_, answer.predicted_memory)) return;
  answer.baseline_memory = now_;
  answer.predicted_memory = predicted_;
  answer.notes.add(Severity::info,
                   "peaks of memory are those of the fullest, rank " + std::to_string(rank_));
}

TrustReason ranks_alone(std::size_t count) {
  return {.name = "ranks",
          .grade = Grade::fair,
          .text = "each of " + std::to_string(count) +
                  " ranks was predicted alone: none waits for another's change",
          .value = static_cast<double>(count),
          .limit = 1};
}

void take_recorded(const Prediction& from, Prediction& to) {
  to.measured = from.measured;
  to.window = from.window;
  to.has_steps = from.has_steps;
  to.has_times = from.has_times;
  to.baseline = from.baseline;
  to.baseline_open = from.baseline_open;
  to.replay_error = from.replay_error;
  to.unexplained = from.unexplained;
  to.tasks = from.tasks;
  std::copy(std::begin(from.dependencies), std::end(from.dependencies), to.dependencies);
  to.baseline_breakdown = from.baseline_breakdown;
  to.baseline_rates = from.baseline_rates;
  to.speedup = ratio(to.baseline.step_time, to.predicted.step_time);
}

}  // namespace foretrace
