#pragma once

// Runs of pipelines whose stages are all alike.

#include "generate/generate.h"
#include "support/schedules.h"

namespace foretrace {

/// RankTimes of a whole rank for one micro-batch, which its chunks share.
struct RankTimes {
  Nanoseconds forward{0}, input{0}, weight{0}, send{0};
};

inline PipelineCosts costs_of(const Schedule& schedule, const RankTimes& times) {
  PipelineCosts costs;
  costs.stages.assign(static_cast<std::size_t>(schedule.stages),
                      {.forward = times.forward / schedule.chunks,
                       .input_gradient = times.input / schedule.chunks,
                       .weight_gradient = times.weight / schedule.chunks,
                       .send_forward = times.send,
                       .send_backward = times.send});
  return costs;
}

inline PipelineRun run_of(std::string_view name, const std::string& settings,
                          const RankTimes& times) {
  const Schedule schedule = schedule_of(name, settings);
  return run_pipeline(schedule, costs_of(schedule, times));
}

inline std::string shape(std::int64_t stages, std::int64_t micro_batches) {
  return "stages=" + std::to_string(stages) + ",micro_batches=" + std::to_string(micro_batches);
}

inline std::vector<std::int32_t> peaks_of(const PipelineRun& run) {
  std::vector<std::int32_t> peaks;
  for (const RankRun& rank : run.ranks) peaks.push_back(rank.peak_in_flight);
  return peaks;
}

}  // namespace foretrace
