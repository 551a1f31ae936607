#pragma once

// The recorded job that is advised on: the reference for all its what-ifs.

#include <memory>
#include <string>
#include <vector>

#include "foretrace/answer/advice.h"
#include "foretrace/infer.h"
#include "job/apply.h"
#include "job/job_graph.h"
#include "question/predict/baseline.h"

namespace foretrace {

struct AdvisedJob {
  const Inference& inference;
  Baseline baseline;  ///< Of the advised rank; its step times are those of the slowest rank.
  JobGraph whole;     ///< Of the advised rank, or of all ranks that it waits for.
  std::vector<Nanoseconds> work;  ///< See lane_work().
  PathShares path;
  double noise = 0, spread = 0;
  double whole_graphs = 0;  ///< Share of kernel time recorded as whole CUDA graphs.
  Trust trust = {};
  /// The job whose ranks wait for each other, and the place of this rank in it; nullptr if the rank
  /// is alone.
  const JobRanks* joined_job = nullptr;
  std::size_t rank = 0;

  Nanoseconds now() const { return baseline.prediction.baseline.step_time; }
  double unexplained() const;
  /// Whether `gain` is more than noise.
  bool matters(Nanoseconds gain) const;
};
/// `place` tells which rank of which job has the inference.
struct RankOfJob {
  const JobRanks* job = nullptr;  ///< See AdvisedJob::joined_job.
  std::size_t rank = 0;
};
AdvisedJob advised_job(const Inference& inference, std::vector<KnownOutcome> user_outcomes = {},
                       const RankOfJob& place = {});

/// The scenario of `predict` with one --with for each of `uses`.
Scenario scenario_with(const std::vector<std::string>& uses);

/// `reason` without the name of the transform, which reports show beside it.
std::string without_place(std::string reason, const std::string& use);

/// Applies a scenario to the rank, or to all ranks of its job, and replays them together, because
/// they wait for each other: the step times are those of the slowest. Throws Error if one of the
/// transforms cannot be applied.
Edited edited_by(const AdvisedJob& job, const Scenario& scenario, const SimulateOptions& options);

/// Step time with all of `uses` applied. Throws Error if one of them cannot be applied.
Nanoseconds step_time_with(const AdvisedJob& job, const std::vector<std::string>& uses);

/// Median distance of the recorded steps from the step time, as a share of it; 0 if there are fewer
/// than two steps.
double spread_of_steps(const StepTimes& measured);

/// The lane on which most work disappears, with its work before and after.
LaneGain local_gain(const AdvisedJob& job, const Graph& edited);

}  // namespace foretrace
