#include "analysis/doubt/inputs.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <string>

#include "analysis/doubt/resample.h"
#include "analysis/doubt/step_variation.h"
#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "base/threads.h"
#include "foretrace/simulate.h"
#include "job/job_graph.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

/// A source of doubt that moves the step time by a smaller share is left out, because it rounds to
/// 0.0 %. Chosen.
constexpr double kVisibleMove = 5e-4;

/// The same kernels take up to this share more or less in another run: other clocks, other places
/// in memory. Chosen, in sight of trainings that were recorded twice (1 to 5 %).
constexpr double kOtherRun = 0.03;

/// Kernel time of each recorded step that has tasks.
std::vector<Nanoseconds> kernel_times(const Graph& recorded) {
  std::vector<Nanoseconds> kernels(recorded.steps().size());
  std::vector<bool> has_tasks(kernels.size());
  for (std::uint32_t i = 0; i < recorded.task_count(); ++i) {
    const Task& task = recorded.task(TaskId{i});
    if (task.step < 0) continue;
    has_tasks[static_cast<std::size_t>(task.step)] = true;
    if (task.kind == TaskKind::kernel)
      kernels[static_cast<std::size_t>(task.step)] += task.duration;
  }
  std::size_t kept = 0;
  for (std::size_t step = 0; step < kernels.size(); ++step) {
    if (has_tasks[step]) kernels[kept++] = kernels[step];
  }
  kernels.resize(kept);
  return kernels;
}

double part_of(Nanoseconds part, Nanoseconds whole) { return std::min(1.0, ratio(part, whole)); }

/// Scales times of recorded steps to the prediction: each keeps its relative distance from the
/// typical one.
void scale_recorded(std::span<const Nanoseconds> times, Nanoseconds typical,
                    IntervalInputs& inputs) {
  if (typical <= 0ns || times.size() < 2) return;
  for (const Nanoseconds time : times)
    inputs.times.push_back(scaled(inputs.point, ratio(time, typical)));
  inputs.recorded_steps = inputs.times.size();
}

/// Picks the values of the steps of the typical kind, or else of all steps that count; `of_steps`
/// is indexed as StepTimes::each.
std::vector<Nanoseconds> typical_of(std::span<const Nanoseconds> of_steps, std::size_t first,
                                    const StepKinds& kinds) {
  if (!kinds.typical)
    return {of_steps.begin() + static_cast<std::ptrdiff_t>(first), of_steps.end()};
  std::vector<Nanoseconds> alike;
  for (const std::size_t step : kinds.kinds[*kinds.typical]) alike.push_back(of_steps[step]);
  return alike;
}

void take_resampled(const Resampled& found, IntervalInputs& inputs) {
  inputs.times = recentered(found, inputs.point);
  inputs.recorded_steps = found.donors;
  inputs.resamples = found.resamples;
}

void vary_steps(const IntervalEvidence& evidence, IntervalInputs& inputs) {
  const StepTimes& measured = evidence.prediction.measured;
  const StepKinds kinds = kinds_of_steps(measured);
  if (!kinds.kinds.empty() && !kinds.typical) {
    inputs.between_kinds = true;
    return scale_recorded(measured.counted, measured.step_time, inputs);
  }
  const ResampleSettings settings{.seed = kIntervalSeed, .leave_out = kinds.unlike()};
  if (kinds.typical && kinds.kinds[*kinds.typical].size() < 2)
    inputs.no_replay_reason = "only one recorded step is like the typical one";
  if (evidence.ranks != nullptr) {
    return take_resampled(
        resample(evidence.ranks->all, evidence.ranks->shown, evidence.ranks->rows, settings),
        inputs);
  }
  if (evidence.variation != nullptr && evidence.variation->donors().size() < 2 &&
      evidence.variation->step_count() >= 3)
    inputs.no_replay_reason = "they are too different to exchange their work";
  if (evidence.variation != nullptr && evidence.variation->donors().size() >= 2) {
    if (all_lanes_fifo(evidence.changed)) {
      return take_resampled(
          resample(*evidence.variation, evidence.inference.graph, evidence.changed, settings),
          inputs);
    }
    inputs.no_replay_reason = "not replayed: lanes that share or preempt their tasks take too long";
  }
  if (evidence.inference.graph.task_count() > kMaxTasksVaried)
    inputs.no_replay_reason = "not replayed: so large a recording would take too much memory";
  scale_recorded(
      kinds.typical ? typical_of(measured.each, measured.first, kinds) : measured.counted,
      measured.step_time, inputs);
}

/// Work that the what-if changed, per step, which bounds the error of its model.
Nanoseconds changed_work(const Graph& recorded, const Graph& changed, bool of_kernels = false) {
  Nanoseconds sum{0};
  for (std::uint32_t i = 0; i < changed.task_count(); ++i) {
    const TaskId task{i};
    if (of_kernels && changed.task(task).kind != TaskKind::kernel) continue;
    const Nanoseconds now = changed.removed(task) ? 0ns : changed.task(task).duration;
    const bool old = i < recorded.task_count();
    const Nanoseconds before = old && !recorded.removed(task) ? recorded.task(task).duration : 0ns;
    sum += std::max(now - before, before - now);
  }
  return sum / static_cast<std::int64_t>(std::max<std::size_t>(recorded.steps().size(), 1));
}

/// Whether no lane has more work than before: then the worst that a wrong model hides is that
/// nothing gets faster.
bool only_shortens(const Graph& recorded, const Graph& changed) {
  std::vector<Nanoseconds> more(changed.lane_count(), 0ns);
  for (std::uint32_t i = 0; i < changed.task_count(); ++i) {
    const TaskId task{i};
    if (!changed.removed(task)) more[index(changed.lane_of(task))] += changed.task(task).duration;
    if (i < recorded.task_count() && !recorded.removed(task))
      more[index(recorded.lane_of(task))] -= recorded.task(task).duration;
  }
  return std::all_of(more.begin(), more.end(), [](Nanoseconds sum) { return sum <= 0ns; });
}

bool is_open(const Graph& graph, const Dependency& wait) {
  return wait.provenance == Provenance::inferred && wait.why != Rule::recorded_start &&
         runs_on_device(graph.task(wait.after).kind);
}

bool has_open_waits(const Graph& graph) {
  bool found = false;
  graph.each_dependency([&](const Dependency& wait) { found |= is_open(graph, wait); });
  return found;
}

/// Step time if no device task waits for inferred dependencies.
Nanoseconds without_open_waits(const Graph& graph) {
  Graph other = graph.clone();
  other.remove_dependencies([&](const Dependency& wait) { return is_open(graph, wait); });
  return replayed_step_time(other);
}

/// If the inferred waits do not exist, the recorded time has other causes, and the change is the
/// one that replays without these waits show.
void add_time_without_inferred(const IntervalEvidence& evidence, IntervalInputs& inputs) {
  if ((evidence.variation == nullptr && evidence.ranks == nullptr) ||
      !has_open_waits(evidence.inference.graph))
    return;
  Nanoseconds before{0}, after{0};
  on_all_cores(2, [&](std::size_t side) {
    (side == 0 ? before : after) =
        without_open_waits(side == 0 ? evidence.inference.graph : evidence.changed);
  });
  if (before <= 0ns) return;
  const Nanoseconds other = scaled(evidence.prediction.baseline.step_time, ratio(after, before));
  const double moved = part_of(std::max(other - inputs.point, inputs.point - other), inputs.point);
  if (moved < kVisibleMove) return;
  inputs.alternatives.push_back(
      {"inferred", other,
       fmt::format("without the waits between streams that are only inferred it would be {}",
                   to_text(other))});
}

/// Where a change knows that the times it computed are less sure than outcomes of its kind were, as
/// for a device that nobody measured, its own error counts: that of the share of the step that
/// kernels take.
void widen(const AppliedStep& step, double kernels, ErrorScale& known) {
  const double error = step.times_error.share * kernels;
  if (error <= known.scale) return;
  known.scale = error;
  known.text =
      fmt::format("times by {} are typically off by {}, kernels take {} of the step",
                  step.times_error.text, to_share(step.times_error.share), to_share(kernels));
}

/// The known errors of the kinds of what-if, where kernels take the share `kernels` of the time.
std::vector<ErrorScale> models_of(const IntervalEvidence& evidence, double kernels) {
  std::vector<ErrorScale> models;
  for (const std::string& kind : kinds_of(evidence.prediction.steps)) {
    ErrorScale known = error_scale(kind, evidence.user_outcomes);
    for (const AppliedStep& step : evidence.prediction.steps) {
      if (kind_of(step.use) == kind) widen(step, kernels, known);
    }
    models.push_back(std::move(known));
  }
  return models;
}

/// Delays without a known cause are kept as they are, but they may just as well scale as the rest
/// does.
void add_time_if_unexplained_scales(const Prediction& prediction, IntervalInputs& inputs) {
  const Unexplained& unexplained = prediction.unexplained;
  const double share = part_of(unexplained.lag + unexplained.peers, unexplained.window);
  const Nanoseconds move = scaled(inputs.point - prediction.baseline.step_time, share);
  if (part_of(std::max(move, -move), inputs.point) < kVisibleMove) return;
  const Nanoseconds other = std::max(0ns, inputs.point + move);
  inputs.alternatives.push_back(
      {"unexplained", other,
       fmt::format("{} of the time is unexplained or due to other ranks, and kept; if "
                   "it changed as the rest does, it would be {}",
                   to_share(share), to_text(other))});
}

/// Where a change knows that its time is a lower bound.
void add_slower_times(const Prediction& prediction, IntervalInputs& inputs) {
  for (const AppliedStep& step : prediction.steps) {
    if (step.slower <= 1) continue;
    const Nanoseconds other = scaled(inputs.point, step.slower);
    inputs.alternatives.push_back({"lower_bound", other,
                                   fmt::format("{} gives a lower bound: up to {} is possible",
                                               kind_of(step.use), to_text(other))});
  }
}

/// Where transfers were priced, the part of them that nothing hides is as unsure as their price.
void add_transfers(const Prediction& prediction, IntervalInputs& inputs) {
  const Nanoseconds exposed = prediction.predicted_breakdown.communication;
  if (part_of(exposed, inputs.point) < kVisibleMove) return;
  for (const AppliedStep& step : prediction.steps) {
    const TransferDoubt& doubt = step.transfers;
    if (doubt.slower <= 1) continue;
    inputs.transfers.push_back(
        {exposed, doubt,
         fmt::format("transfers of {} take from 1/{} to {} times as long as priced, which nothing "
                     "hides for {}",
                     kind_of(step.use), to_fixed(doubt.faster, 2), to_fixed(doubt.slower, 2),
                     to_text(exposed))});
  }
}

/// Time that each task waited for other ranks, by recorded rank and task.
std::vector<std::vector<Nanoseconds>> waits_of_steps(const JobRanks& job) {
  std::vector<std::vector<Nanoseconds>> waits;
  for (const Rank& rank : job.ranks) waits.emplace_back(rank.inference.graph.task_count(), 0ns);
  for (const MatchedCollective& collective : job.join.collectives) {
    for (const CollectiveMember& one : collective.members) {
      if (one.rank < waits.size()) waits[one.rank][index(one.task)] = one.skew;
    }
  }
  return waits;
}

}  // namespace

Nanoseconds least_step_time(const Graph& recorded, const Graph& changed, Longer longer) {
  Graph least = changed.clone();
  for (std::uint32_t i = 0; i < least.task_count(); ++i) {
    Task& task = least.task(TaskId{i});
    const Nanoseconds before = i < recorded.task_count() ? recorded.task(TaskId{i}).duration : 0ns;
    if (task.duration < before)
      task.duration = 0ns;
    else if (longer == Longer::undone)
      task.duration = before;
  }
  return replayed_step_time(least);
}

IntervalInputs kernel_inputs(const IntervalEvidence& evidence) {
  const Prediction& prediction = evidence.prediction;
  const StepTimes& measured = prediction.measured;
  IntervalInputs inputs;
  inputs.point = prediction.predicted_breakdown.compute;
  const std::vector<Nanoseconds> kernels = kernel_times(evidence.inference.graph);
  if (kernels.size() == measured.each.size() && !kernels.empty()) {
    const std::vector<Nanoseconds> alike =
        typical_of(kernels, measured.first, kinds_of_steps(measured));
    scale_recorded(alike, median(std::vector<Nanoseconds>(alike)), inputs);
  }
  inputs.replay_error = kOtherRun;
  inputs.changed_work = changed_work(evidence.inference.graph, evidence.changed, true);
  if (inputs.changed_work > 0ns) inputs.models = models_of(evidence, 1);
  return inputs;
}

IntervalInputs interval_inputs(const IntervalEvidence& evidence) {
  const Prediction& prediction = evidence.prediction;
  IntervalInputs inputs;
  inputs.point = prediction.predicted.step_time;
  inputs.replay_error = prediction.replay_error;
  vary_steps(evidence, inputs);
  if (prediction.steps.empty()) return inputs;
  const Nanoseconds change = inputs.point - prediction.baseline.step_time;
  inputs.changed_work =
      std::max(changed_work(evidence.inference.graph, evidence.changed), std::max(change, -change));
  inputs.models =
      models_of(evidence, part_of(prediction.predicted_breakdown.compute, inputs.point));
  const bool is_model = std::any_of(inputs.models.begin(), inputs.models.end(),
                                    [](const ErrorScale& model) { return model.scale > 0; });
  if (is_model && evidence.ranks == nullptr && prediction.has_times)
    inputs.least = least_step_time(evidence.inference.graph, evidence.changed, Longer::undone);
  const bool may_be_slower =
      std::any_of(prediction.steps.begin(), prediction.steps.end(),
                  [](const AppliedStep& step) { return step.times_error.share > 0; });
  if (is_model && !may_be_slower && only_shortens(evidence.inference.graph, evidence.changed))
    inputs.greatest = std::max(prediction.baseline.step_time, inputs.point);
  add_time_without_inferred(evidence, inputs);
  add_time_if_unexplained_scales(prediction, inputs);
  add_slower_times(prediction, inputs);
  add_transfers(prediction, inputs);
  return inputs;
}

ResampledJob::ResampledJob(const JobRanks& job, const JointReplay& replayed, std::size_t shown,
                           const std::function<const Graph&(std::size_t)>& graph_of) {
  if (!job.is_joined() || !replayed.rows || replayed.rows->task_count() > kMaxTasksResampled)
    return;
  waits_ = waits_of_steps(job);
  variations_.resize(job.ranks.size());
  const auto vary = [&](std::size_t i) {
    if (!variations_[i]) variations_[i].emplace(job.ranks[i].inference, waits_[i]);
  };
  const std::size_t first = job.world[shown].recorded;
  vary(first);
  if (variations_[first]->donors().size() < 2) return;
  on_all_cores(job.ranks.size(), vary);
  for (const std::uint32_t rank : replayed.kept) {
    const std::uint32_t recorded = job.world[rank].recorded;
    ranks_.push_back({*variations_[recorded], job.ranks[recorded].inference.graph, graph_of(rank),
                      waits_[recorded]});
  }
  const auto place = std::find(replayed.kept.begin(), replayed.kept.end(), shown);
  const auto number = static_cast<std::size_t>(place - replayed.kept.begin());
  if (common_donors(ranks_, number).size() < 2) return;
  joint_ranks_.emplace(JointRanks{ranks_, number, *replayed.rows});
}

}  // namespace foretrace
