#include "question/predict/replayed_rank.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <utility>

#include "analysis/doubt/inputs.h"
#include "analysis/doubt/interval.h"
#include "analysis/doubt/memory_interval.h"
#include "analysis/doubt/step_variation.h"
#include "analysis/doubt/trust.h"
#include "analysis/match/step_work.h"
#include "analysis/memory/memory_peaks.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "foretrace/simulate.h"
#include "job/retimed_replay.h"
#include "question/predict/explain.h"
#include "question/predict/rates.h"

namespace foretrace {
namespace {

/// Counts dependencies. The order on a lane counts as one structural dependency for each task after
/// another.
void count_dependencies(const Graph& graph, Prediction& prediction) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.previous(TaskId{i}) == kNoTask) continue;
    ++prediction.dependencies[static_cast<int>(Provenance::structural)];
  }
  graph.each_dependency([&](const Dependency& wait) {
    ++prediction.dependencies[static_cast<int>(wait.provenance)];
  });
}

/// Notes devices that run out of memory, the most important message for a question about memory.
void note_refusals(Prediction& prediction) {
  for (const MemoryPeak& peak : prediction.predicted_memory) {
    if (!peak.out_of_memory) continue;
    prediction.notes.add(
        Severity::info,
        fmt::format("out of memory on device {}; times are those of a device with enough memory",
                    peak.device));
  }
}

/// Memory of the device that the changed work runs on; 0 if it is not known.
Bytes device_memory(const Edited& edited) {
  if (edited.applied.device_memory > Bytes{}) return edited.applied.device_memory;
  for (const std::string& name : edited.graph.device_names()) {
    if (const DeviceModel* const device = device_recorded_as(name)) return device->memory;
  }
  return {};
}

/// Answers a what-if. `prediction` describes the baseline, and becomes the answer.
ReplayedRank what_if(Edited edited, Prediction prediction, const Scenario& scenario,
                     const PredictOptions& options) {
  describe_edit(scenario, edited, true, prediction);
  prediction.predicted_breakdown = breakdown(edited.graph, edited.timeline);
  note_edit(edited, prediction);
  if (options.explain) prediction.explained = explain(edited.graph, edited.timeline);
  ReplayedRank answer;
  answer.prediction = std::move(prediction);
  answer.graph = std::move(edited.graph);
  answer.timeline = std::move(edited.timeline);
  return answer;
}

/// Makes the interval hold both paces of a replay.
void hold_paces(Prediction& prediction) {
  const std::optional<Paces> paces = two_paces(prediction.predicted, prediction.baseline);
  if (!paces) return;
  prediction.interval_parts.push_back(
      {"paces", std::min(paces->fast, prediction.predicted.step_time),
       std::max(paces->slow, prediction.predicted.step_time), to_text(*paces)});
  const IntervalPart& part = prediction.interval_parts.back();
  prediction.lower = std::min(prediction.lower, part.lower);
  prediction.upper = std::max(prediction.upper, part.upper);
  prediction.interval_source += "; " + part.text;
}

void add_recorded_reserved(const Rank& rank, std::vector<MemoryPeak>& peaks) {
  for (MemoryPeak& peak : peaks) {
    const auto found = rank.recorded_reserved.find(peak.device);
    if (found != rank.recorded_reserved.end() && found->second > Bytes{})
      peak.recorded_reserved = found->second;
  }
}

}  // namespace

Prediction described_baseline(const Inference& inference, const Timeline& replayed) {
  Prediction prediction;
  prediction.notes = inference.notes;
  prediction.assumptions = inference.assumptions;
  const Graph& graph = inference.graph;
  prediction.measured = step_times(graph, inference.recorded);
  prediction.baseline = step_times(graph, replayed);
  prediction.has_steps = !graph.steps().empty();
  prediction.unexplained = graph.unexplained();
  prediction.window = graph.unexplained().window;
  prediction.tasks = graph.task_count();
  prediction.baseline_breakdown = breakdown(graph, replayed);
  prediction.baseline_memory = memory_peaks(graph, replayed, {});
  find_unknown_use(graph, replayed, prediction.baseline_memory);
  count_dependencies(graph, prediction);
  const Nanoseconds measured = prediction.measured.step_time;
  if (measured <= 0ns) throw TraceError("nothing to simulate: no step of the trace takes any time");
  prediction.replay_error = std::abs(ratio(prediction.baseline.step_time - measured, measured));
  if (prediction.replay_error > 0.01) {
    prediction.notes.add(
        Severity::warning,
        "the unmodified replay does not reproduce the recording; do not trust what-ifs on it",
        to_percent(prediction.replay_error, 2) + " off");
  }
  return prediction;
}

void describe_edit(const Scenario& scenario, Edited& edited, bool memory, Prediction& prediction) {
  prediction.steps = std::move(edited.applied.steps);
  for (std::string& assumption : edited.applied.assumptions)
    prediction.assumptions.push_back(std::move(assumption));
  prediction.notes.merge(edited.applied.notes);
  prediction.predicted = edited.times;
  prediction.device_memory = device_memory(edited);
  if (memory)
    prediction.predicted_memory =
        memory_peaks(edited.graph, edited.timeline, allocator_of(scenario));
  if (prediction.predicted.step_time <= 0ns)
    throw Error("nothing to simulate: the scenario leaves no work in a step");
  prediction.speedup = ratio(prediction.baseline.step_time, prediction.predicted.step_time);
}

void note_edit(const Edited& edited, Prediction& prediction) {
  note_refusals(prediction);
  note_overfull_lanes(edited.graph, edited.timeline, prediction.notes);
  if (prediction.has_times && prediction.predicted.step_time == prediction.baseline.step_time) {
    prediction.notes.add(Severity::info,
                         "the step time does not change: steps do not wait for what the scenario "
                         "speeds up or slows down");
  }
}

void note_question(const Scenario& scenario, Prediction& prediction) {
  prediction.scenario_json = to_text(scenario);
  prediction.memory_limit = allocator_of(scenario).limit;
}

ReplayedRank as_recorded(const Inference& inference, Timeline replayed, Prediction prediction,
                         const Scenario& scenario, const PredictOptions& options) {
  prediction.predicted = prediction.baseline;
  prediction.predicted_breakdown = prediction.baseline_breakdown;
  prediction.predicted_memory = memory_peaks(inference.graph, replayed, allocator_of(scenario));
  note_refusals(prediction);
  if (options.explain) prediction.explained = explain(inference.graph, replayed);
  ReplayedRank answer;
  answer.prediction = std::move(prediction), answer.timeline = std::move(replayed);
  if (!options.perfetto_path.empty()) answer.graph = inference.graph.clone();
  return answer;
}

void set_interval(const Inference& inference, const Graph& changed, const StepVariation* variation,
                  std::span<const KnownOutcome> user_outcomes, Prediction& prediction,
                  const JointRanks* ranks) {
  const IntervalEvidence evidence{.inference = inference,
                                  .changed = changed,
                                  .prediction = prediction,
                                  .variation = variation,
                                  .user_outcomes = user_outcomes,
                                  .ranks = ranks};
  const IntervalInputs inputs = interval_inputs(evidence);
  Interval interval = interval_of(inputs);
  prediction.lower = interval.lower;
  prediction.upper = interval.upper;
  prediction.interval_source = std::move(interval.source);
  prediction.interval_parts = std::move(interval.parts);
  prediction.resamples = static_cast<std::int64_t>(inputs.resamples);
  prediction.step_kinds = steps_by_kind(prediction.measured, prediction.predicted);
  // Steps of several kinds run at several paces as recorded.
  if (prediction.step_kinds.empty()) hold_paces(prediction);
  set_memory_interval(prediction);
}

void judge(const Inference& inference, const Graph& changed,
           std::span<const KnownOutcome> user_outcomes, bool alone, Prediction& prediction) {
  const bool is_faster = prediction.predicted.step_time < prediction.baseline.step_time;
  if (alone && prediction.has_times && is_faster)
    prediction.predicted_bound = least_step_time(inference.graph, changed, Longer::kept);
  prediction.predicted_open =
      prediction.steps.empty() ? prediction.baseline_open
                               : open_step_time(inference, changed, prediction.predicted.step_time);
  prediction.trust = trust_of(prediction, user_outcomes);
}

void set_interval(const Inference& inference, std::span<const KnownOutcome> user_outcomes,
                  ReplayedRank& answer, const JointRanks* ranks) {
  Prediction& prediction = answer.prediction;
  const Graph& changed = prediction.steps.empty() ? inference.graph : answer.graph;
  std::optional<StepVariation> variation;
  if (prediction.has_times && ranks == nullptr) variation = variation_of(inference);
  set_interval(inference, changed, variation ? &*variation : nullptr, user_outcomes, prediction,
               ranks);
  // Only an answer of its own shows it: advice and sweeps ask for thousands of step times.
  if (prediction.predicted_breakdown.compute > 0ns) {
    const Interval kernels = interval_of(kernel_inputs({.inference = inference,
                                                        .changed = changed,
                                                        .prediction = prediction,
                                                        .user_outcomes = user_outcomes}));
    prediction.compute_lower = kernels.lower;
    prediction.compute_upper = kernels.upper;
  }
  examine_baseline(inference, prediction);
  // Ranks that wait for each other have no step times of their own.
  if (ranks != nullptr) prediction.baseline_unprofiled = 0ns;
  if (prediction.baseline_unprofiled > 0ns)
    prediction.predicted_unprofiled =
        prediction.steps.empty() ? prediction.baseline_unprofiled : unprofiled_step_time(changed);
  judge(inference, changed, user_outcomes, ranks == nullptr, prediction);
}

ReplayedRank answer(const Inference& inference, const Scenario& scenario, Timeline replayed,
                    std::optional<Edited> edited, const PredictOptions& options, bool has_times) {
  Prediction prediction = described_baseline(inference, replayed);
  prediction.has_times = has_times;
  prediction.baseline_rates = rates_of(inference.graph, replayed, scenario);
  prediction.predicted_rates = changed_rates(prediction.baseline_rates, scenario);
  note_question(scenario, prediction);
  if (edited) return what_if(std::move(*edited), std::move(prediction), scenario, options);
  return as_recorded(inference, std::move(replayed), std::move(prediction), scenario, options);
}

ReplayedRank answer(const JobRanks& job, const Rank& rank, const Scenario& scenario,
                    Timeline replayed, std::optional<Edited> edited,
                    const PredictOptions& options) try {
  ReplayedRank result = answer(rank.inference, scenario, std::move(replayed), std::move(edited),
                               options, !rank.is_snapshot);
  result.recorded = &rank.inference.graph;
  if (rank.trace) result.trace = &*rank.trace;
  Notes notes;
  notes.merge(rank.import_notes);
  notes.merge(result.prediction.notes);
  result.prediction.notes = std::move(notes);
  add_recorded_reserved(rank, result.prediction.baseline_memory);
  return result;
} catch (const TraceError& error) {
  if (job.path.empty()) throw;
  throw TraceError(fmt::format("{}: {}", job.place(rank), error.what()));
}

}  // namespace foretrace
