#include "question/advise/advised_job.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analysis/doubt/trust.h"
#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "foretrace/simulate.h"
#include "job/chosen_rank.h"
#include "job/step_cost.h"

namespace foretrace {
namespace {

/// Smaller gains are within the error of models, however steady the job is.
constexpr double kMinNoise = 0.01;
/// Steps that differ more than this do so before and after a change alike: what a change gains does
/// not vary with them, and its interval says how sure it is. Chosen.
constexpr double kMaxNoise = 0.05;

/// Share of kernel time in CUDA graphs that were recorded as one piece of work each, because the
/// tool did not look into them.
double share_of_whole_graphs(const Graph& graph) {
  Nanoseconds whole{0}, all{0};
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel) continue;
    all += task.duration;
    if (graph.name(TaskId{i}).starts_with("CUDA graph ")) whole += task.duration;
  }
  return ratio(whole, all);
}

/// Replays all ranks of the job, and takes over the step times of the slowest.
void replay_ranks(AdvisedJob& job) {
  const JointReplay all =
      replay(*job.joined_job, graphs_of(*job.joined_job), {.reasons = true, .memory = false});
  const std::uint32_t alike = all.first_alike[job.rank];
  job.whole = JobGraph(
      all.joint, static_cast<std::size_t>(std::ranges::find(all.kept, alike) - all.kept.begin()));
  SlowestRank slowest;
  Prediction& now = job.baseline.prediction;
  for (const std::uint32_t i : all.kept) {
    const Inference& rank = job.joined_job->ranks[job.joined_job->world[i].recorded].inference;
    const StepTimes times = step_times(rank.graph, all.timelines[i]);
    if (!slowest.consider(i, times.step_time)) continue;
    now.baseline = times;
    now.measured = step_times(rank.graph, rank.recorded);
  }
  now.replay_error =
      std::abs(ratio(now.baseline.step_time - now.measured.step_time, now.measured.step_time));
}

}  // namespace

double AdvisedJob::unexplained() const {
  const Unexplained& open = baseline.prediction.unexplained;
  return std::min(1.0, ratio(open.lag + open.peers, open.window));
}

bool AdvisedJob::matters(Nanoseconds gain) const {
  return static_cast<double>(gain.count()) > noise * static_cast<double>(now().count());
}

std::string without_place(std::string reason, const std::string& use) {
  const std::string place = use + ": ";
  if (reason.starts_with(place)) reason.erase(0, place.size());
  return reason;
}

double spread_of_steps(const StepTimes& measured) {
  const std::vector<Nanoseconds>& steps = measured.counted;
  if (steps.size() < 2 || measured.step_time <= 0ns) return 0;
  std::vector<Nanoseconds> off;
  for (const Nanoseconds step : steps)
    off.emplace_back(std::abs((step - measured.step_time).count()));
  return ratio(median(std::move(off)), measured.step_time);
}

AdvisedJob advised_job(const Inference& inference, std::vector<KnownOutcome> user_outcomes,
                       const RankOfJob& place) {
  AdvisedJob job{.inference = inference,
                 .baseline = baseline_of(inference, true),
                 .whole = inference.graph,
                 .work = lane_work(inference.graph),
                 .path = {},
                 .joined_job = place.job,
                 .rank = place.rank};
  if (place.job != nullptr) replay_ranks(job);
  job.baseline.user_outcomes = std::move(user_outcomes);
  job.path = path_shares(inference.graph, job.baseline.replayed);
  job.spread = spread_of_steps(job.baseline.prediction.measured);
  job.noise = std::clamp(job.spread, kMinNoise, kMaxNoise);
  job.whole_graphs = share_of_whole_graphs(inference.graph);
  job.trust = trust_of_recording(job.baseline.prediction, AnswerAbout::changes);
  return job;
}

Scenario scenario_with(const std::vector<std::string>& uses) {
  Scenario scenario;
  for (const std::string& use : uses) {
    scenario.transforms.push_back(read_transform_text(use));
    scenario.uses.push_back(use);
  }
  return scenario;
}

Edited edited_by(const AdvisedJob& job, const Scenario& scenario, const SimulateOptions& options) {
  if (job.joined_job == nullptr) return edited_by(job.inference.graph, scenario, options);
  EditedJob all = edited_by(*job.joined_job, scenario, {.memory = options.memory});
  Edited edited = std::move(all.of(job.rank));
  for (const Edited& rank : all.ranks) {
    if (rank.times.step_time > edited.times.step_time) edited.times = rank.times;
  }
  // Replaying the rank alone gives the same times, and the path of this rank.
  if (options.reasons) edited.timeline = simulate(edited.graph, options);
  return edited;
}

Nanoseconds step_time_with(const AdvisedJob& job, const std::vector<std::string>& uses) {
  return edited_by(job, scenario_with(uses), {.memory = false}).step_time();
}

LaneGain local_gain(const AdvisedJob& job, const Graph& edited) {
  const std::vector<Nanoseconds> after = lane_work(edited);
  LaneGain most;
  for (std::size_t i = 0; i < job.work.size() && i < after.size(); ++i) {
    if (job.work[i] - after[i] <= most.before - most.after) continue;
    most = {edited.lane(LaneId{static_cast<std::uint32_t>(i)}).name, job.work[i], after[i]};
  }
  return most;
}

}  // namespace foretrace
