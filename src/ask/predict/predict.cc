#include "foretrace/ask/predict.h"

#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "ask/interval/inputs.h"
#include "ask/interval/interval.h"
#include "ask/interval/ledger.h"
#include "ask/interval/memory_interval.h"
#include "ask/job/apply.h"
#include "ask/job/chosen_rank.h"
#include "ask/job/job.h"
#include "ask/job/lane_work.h"
#include "ask/job/memory_peaks.h"
#include "ask/predict/baseline.h"
#include "ask/predict/explain.h"
#include "ask/predict/prediction_html.h"
#include "ask/predict/rates.h"
#include "ask/predict/trust.h"
#include "base/threads.h"
#include "foretrace/ask/ledger.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/render.h"
#include "foretrace/scaling.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// An answer and its sources, so that the predicted timeline can be written.
struct Answer {
  Prediction prediction;
  Graph graph;  ///< Empty for the job as recorded, unless it is to be written.
  Timeline timeline;
  const Graph* recorded = nullptr;  ///< Belongs to the rank that the answer is about.
  const Trace* trace = nullptr;     ///< Belongs to the same rank, if it is known.
};

/// The order of tasks on a lane counts as one structural dependency for each task after another.
void count_dependencies(const Graph& graph, Prediction& prediction) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.previous(TaskId{i}) == kNoTask) continue;
    ++prediction.dependencies[static_cast<int>(Provenance::structural)];
  }
  graph.each_dependency([&](const Dependency& wait) {
    ++prediction.dependencies[static_cast<int>(wait.provenance)];
  });
}

void describe_baseline(const Inference& inference, const Timeline& replayed,
                       Prediction& prediction) {
  const Graph& graph = inference.graph;
  prediction.measured = step_times(graph, inference.recorded);
  prediction.baseline = step_times(graph, replayed);
  prediction.has_steps = !graph.steps().empty();
  prediction.unexplained = graph.unexplained();
  prediction.window = graph.unexplained().window;
  prediction.tasks = graph.task_count();
  prediction.baseline_breakdown = breakdown(graph, replayed);
  prediction.baseline_memory = memory_peaks(graph, replayed, {});
  count_dependencies(graph, prediction);
  const Nanoseconds measured = prediction.measured.step_time;
  if (measured <= 0ns) throw TraceError("nothing to simulate: no step of the trace takes any time");
  prediction.replay_error = std::abs(ratio(prediction.baseline.step_time - measured, measured));
  prediction.baseline_open = open_step_time(inference, graph, prediction.baseline.step_time);
  if (prediction.replay_error > 0.01) {
    prediction.notes.add(
        Severity::warning,
        "the unmodified replay does not reproduce the recording; do not trust what-ifs on it",
        to_percent(prediction.replay_error, 2) + " off");
  }
}

/// Fills in everything that follows from an edited graph and its timeline; `memory`: the peaks as
/// well.
void describe_edit(const Scenario& scenario, Edited& edited, bool memory, Prediction& prediction) {
  prediction.steps = std::move(edited.applied.steps);
  for (std::string& assumption : edited.applied.assumptions)
    prediction.assumptions.push_back(std::move(assumption));
  prediction.notes.merge(edited.applied.notes);
  prediction.predicted = edited.times;
  if (memory)
    prediction.predicted_memory =
        memory_peaks(edited.graph, edited.timeline, allocator_of(scenario));
  if (prediction.predicted.step_time <= 0ns)
    throw Error("nothing to simulate: the scenario leaves no work in a step");
  prediction.speedup = ratio(prediction.baseline.step_time, prediction.predicted.step_time);
}

/// `variation` is nullptr where only the point is worth the time.
void set_interval(const Inference& inference, const Graph& changed, const StepVariation* variation,
                  std::span<const KnownOutcome> own, Prediction& prediction) {
  const IntervalInputs inputs = interval_inputs({.inference = inference,
                                                 .changed = changed,
                                                 .prediction = prediction,
                                                 .variation = variation,
                                                 .own = own});
  Interval interval = interval_of(inputs);
  prediction.lower = interval.lower;
  prediction.upper = interval.upper;
  prediction.interval_source = std::move(interval.source);
  prediction.interval_parts = std::move(interval.parts);
  prediction.resamples = static_cast<std::int64_t>(inputs.resamples);
  set_memory_interval(prediction);
}

/// The grade, of a prediction with everything else filled in.
void judge(const Inference& inference, const Graph& changed, std::span<const KnownOutcome> own,
           Prediction& prediction) {
  if (!prediction.steps.empty())
    prediction.predicted_open = open_step_time(inference, changed, prediction.predicted.step_time);
  prediction.trust = trust_of(prediction, own);
}

/// The interval and the grade; by replays, where the trace has times.
void set_interval(const Inference& inference, std::span<const KnownOutcome> own, Answer& answer) {
  Prediction& prediction = answer.prediction;
  const Graph& changed = prediction.steps.empty() ? inference.graph : answer.graph;
  std::optional<StepVariation> variation;
  if (prediction.has_times) variation = variation_of(inference);
  set_interval(inference, changed, variation ? &*variation : nullptr, own, prediction);
  judge(inference, changed, own, prediction);
}

/// For a question about memory, this is the most important message.
void note_refusals(Prediction& prediction) {
  for (const MemoryPeak& peak : prediction.predicted_memory) {
    if (!peak.out_of_memory) continue;
    prediction.notes.add(Severity::info, "out of memory on device " + std::to_string(peak.device) +
                                             "; times are those of a device with enough memory");
  }
}

/// The part that is common to all what-ifs.
Prediction described_baseline(const Inference& inference, const Timeline& replayed) {
  Prediction prediction;
  prediction.notes = inference.notes;
  prediction.assumptions = inference.assumptions;
  describe_baseline(inference, replayed, prediction);
  return prediction;
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

/// `prediction` describes the baseline, and becomes the answer.
Answer what_if(Edited edited, Prediction prediction, const Scenario& scenario,
               const PredictOptions& options) {
  describe_edit(scenario, edited, true, prediction);
  prediction.predicted_breakdown = breakdown(edited.graph, edited.timeline);
  note_edit(edited, prediction);
  if (options.explain) prediction.explained = explain(edited.graph, edited.timeline);
  Answer answer;
  answer.prediction = std::move(prediction);
  answer.graph = std::move(edited.graph);
  answer.timeline = std::move(edited.timeline);
  return answer;
}

Answer as_recorded(const Inference& inference, Timeline replayed, Prediction prediction,
                   const Scenario& scenario, const PredictOptions& options) {
  prediction.predicted = prediction.baseline;
  prediction.predicted_open = prediction.baseline_open;
  prediction.predicted_breakdown = prediction.baseline_breakdown;
  prediction.predicted_memory = memory_peaks(inference.graph, replayed, allocator_of(scenario));
  note_refusals(prediction);
  if (options.explain) prediction.explained = explain(inference.graph, replayed);
  Answer answer;
  answer.prediction = std::move(prediction), answer.timeline = std::move(replayed);
  if (!options.perfetto_path.empty()) answer.graph = inference.graph.clone();
  return answer;
}

void note_question(const Scenario& scenario, Prediction& prediction) {
  prediction.scenario_json = to_text(scenario);
  prediction.memory_limit = allocator_of(scenario).limit;
}

Answer answer(const Inference& inference, const Scenario& scenario, const PredictOptions& options,
              bool has_times = true) {
  const bool is_edited = edits(scenario);
  Timeline replayed = simulate(inference.graph, {.reasons = options.explain && !is_edited});
  Prediction prediction;
  Edited edited;
  on_all_cores(is_edited ? 2 : 1, [&](std::size_t side) {
    if (side == 0)
      prediction = described_baseline(inference, replayed);
    else
      edited = edited_by(inference.graph, scenario, {.reasons = options.explain});
  });
  prediction.has_times = has_times;
  prediction.baseline_rates = rates_of(inference.graph, replayed, scenario);
  prediction.predicted_rates = changed_rates(prediction.baseline_rates, scenario);
  note_question(scenario, prediction);
  if (is_edited) return what_if(std::move(edited), std::move(prediction), scenario, options);
  return as_recorded(inference, std::move(replayed), std::move(prediction), scenario, options);
}

void add_recorded_reserved(const Rank& rank, std::vector<MemoryPeak>& peaks) {
  for (MemoryPeak& peak : peaks) {
    const auto found = rank.recorded_reserved.find(peak.device);
    if (found != rank.recorded_reserved.end() && found->second > Bytes{})
      peak.recorded_reserved = found->second;
  }
}

/// Errors of the trace say which; those of the scenario are about all ranks.
Answer answer(const Job& job, const Rank& rank, const Scenario& scenario,
              const PredictOptions& options) try {
  Answer result = answer(rank.inference, scenario, options, !rank.is_snapshot);
  result.recorded = &rank.inference.graph;
  if (rank.trace) result.trace = &*rank.trace;
  Notes notes;
  notes.merge(rank.import_notes);
  notes.merge(result.prediction.notes);
  result.prediction.notes = std::move(notes);
  add_recorded_reserved(rank, result.prediction.baseline_memory);
  return result;
} catch (const TraceError& error) {
  throw TraceError(job.place(rank) + ": " + error.what());
}

/// The peaks of the rank that decides whether the job fits.
struct FullestPeaks {
  Fullest chosen;
  std::vector<MemoryPeak> now, predicted;

  void consider(std::size_t rank, const Prediction& prediction) {
    if (!chosen.consider(rank, need_of(prediction.predicted_memory))) return;
    now = prediction.baseline_memory;
    predicted = prediction.predicted_memory;
  }
};

void take_peaks(FullestPeaks fullest, const Job& job, Prediction& prediction) {
  if (fullest.chosen.most() <= need_of(prediction.predicted_memory)) return;
  prediction.baseline_memory = std::move(fullest.now);
  prediction.predicted_memory = std::move(fullest.predicted);
  prediction.notes.add(Severity::info, "peaks of memory are those of the fullest, rank " +
                                           std::to_string(job.ranks[fullest.chosen.rank()].number));
}

/// A reason to trust the answer less.
TrustReason ranks_alone(std::size_t count) {
  return {.name = "ranks",
          .grade = Grade::fair,
          .text = "each of " + std::to_string(count) +
                  " ranks was predicted alone: none waits for another's change",
          .value = static_cast<double>(count),
          .limit = 1};
}

/// Adds what was odd about the recordings of ranks other than the one that is shown.
void add_warnings(const Job& job, std::size_t shown, Notes& notes) {
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (i == shown) continue;
    for (const Note& note : job.ranks[i].import_notes.all()) {
      if (note.severity != Severity::warning) continue;
      notes.add(note.severity, note.text, note.example, note.count);
    }
  }
}

/// The rank with the longest predicted step, as the others wait for it, compared with the rank that
/// had the longest step before.
Answer slowest(const Job& job, const Scenario& scenario, const PredictOptions& options) {
  const std::vector<KnownOutcome> own = own_outcomes(options.ledger_path);
  Answer worst;
  RecordedRun recorded;
  Slowest predicted_slowest, recorded_slowest;
  FullestPeaks fullest;
  std::string all;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    Answer next = answer(job, job.ranks[i], scenario, options);
    const Prediction& prediction = next.prediction;
    all += (i == 0 ? "rank " : ", rank ") + std::to_string(job.ranks[i].number) + ": ";
    if (edits(scenario)) all += to_text(prediction.baseline.step_time) + " -> ";
    all += to_text(prediction.predicted.step_time);
    if (recorded_slowest.consider(i, prediction.baseline.step_time)) recorded = prediction;
    fullest.consider(i, prediction);
    if (predicted_slowest.consider(i, prediction.predicted.step_time)) worst = std::move(next);
  }
  const std::size_t shown = predicted_slowest.rank();
  const bool is_another = recorded_slowest.rank() != shown;
  set_interval(job.ranks[shown].inference, own, worst);
  if (is_another) compare_with(recorded, worst.prediction);
  take_peaks(std::move(fullest), job, worst.prediction);
  set_memory_interval(worst.prediction);
  if (job.ranks.size() == 1) return worst;
  if (edits(scenario)) worst.prediction.trust.reasons.push_back(ranks_alone(job.ranks.size()));
  add_warnings(job, shown, worst.prediction.notes);
  std::string text = "each rank was predicted alone; the answer is the slowest, rank " +
                     std::to_string(job.ranks[shown].number);
  if (is_another)
    text += "; as recorded it is rank " +
            std::to_string(job.ranks[recorded_slowest.rank()].number) + " with " +
            to_text(recorded.baseline.step_time);
  worst.prediction.notes.add(Severity::info, text, all);
  return worst;
}

void refuse_warnings(const Notes& notes) {
  for (const Note& note : notes.all()) {
    if (note.severity != Severity::warning) continue;
    std::string detail = note.count > 1 ? std::to_string(note.count) + " times" : "";
    if (!note.example.empty()) detail += (detail.empty() ? "" : ", first: ") + note.example;
    throw TraceError("refused because of --strict: " + note.text +
                     (detail.empty() ? "" : " (" + detail + ")"));
  }
}

/// In the format that the ending of the path names; PyTorch's profiler's for any other.
void write_timeline(const Answer& answer, const std::string& path) {
  const ExporterEntry* exporter = exporter_for(path);
  if (exporter == nullptr) exporter = exporter_for(".json");
  exporter->write(render(answer.graph, answer.timeline, answer.trace), path);
}

void refuse_poor(const Trust& trust) {
  if (trust.grade() == Grade::poor)
    throw TraceError("refused because of --strict: trust is " + trust_warning(trust));
}

void finish(const Answer& answer, const PredictOptions& options) {
  if (options.strict) {
    refuse_warnings(answer.prediction.notes);
    refuse_poor(answer.prediction.trust);
  }
  if (!options.perfetto_path.empty()) write_timeline(answer, options.perfetto_path);
  if (!options.html_path.empty()) {
    const bool is_what_if = !answer.prediction.steps.empty();
    write_prediction_html(*answer.recorded, is_what_if ? &answer.graph : nullptr, answer.prediction,
                          options.html_path);
  }
}

}  // namespace

Prediction predict(const std::string& trace_path, const Scenario& scenario,
                   const PredictOptions& options) {
  const Job job = read_job(
      trace_path, {.reading = options.reading, .keep_traces = !options.perfetto_path.empty()});
  check_ranks(scenario, job);
  Donors(options.reading).teach(scenario);
  Answer answer = slowest(job, scenario, options);
  answer.prediction.inputs = job.inputs();
  finish(answer, options);
  return std::move(answer.prediction);
}

Prediction predict(const Inference& inference, const Scenario& scenario,
                   const PredictOptions& options) {
  check_ranks(scenario, inference.graph);
  Donors(options.reading).teach(scenario);
  const std::vector<KnownOutcome> own = own_outcomes(options.ledger_path);
  Answer result = answer(inference, scenario, options);
  result.recorded = &inference.graph;
  set_interval(inference, own, result);
  finish(result, options);
  return std::move(result.prediction);
}

Baseline baseline_of(const Inference& inference, bool reasons) {
  Timeline replayed = simulate(inference.graph, {.reasons = reasons});
  Prediction prediction = described_baseline(inference, replayed);
  return {.replayed = std::move(replayed), .prediction = std::move(prediction)};
}

Edited edited_by(const Graph& graph, const Scenario& scenario, const SimulateOptions& options) {
  Edited edited{.graph = graph.clone(), .timeline = {}, .times = {}, .applied = {}};
  edited.applied = apply(scenario, edited.graph);
  edited.timeline = simulate(edited.graph, options);
  edited.times = step_times(edited.graph, edited.timeline);
  return edited;
}

Prediction predict_edited(const Baseline& baseline, const Inference& inference,
                          const Scenario& scenario, Edited& edited, const Wanted& wanted) {
  Prediction prediction = baseline.prediction;
  note_question(scenario, prediction);
  describe_edit(scenario, edited, wanted.memory, prediction);
  note_edit(edited, prediction);
  const StepVariation* const variation = baseline.variation ? &*baseline.variation : nullptr;
  set_interval(inference, edited.graph, variation, baseline.own, prediction);
  if (wanted.trust) judge(inference, edited.graph, baseline.own, prediction);
  return prediction;
}

Prediction predict_on(const Baseline& baseline, const Inference& inference,
                      const Scenario& scenario) {
  if (edits(scenario)) {
    Edited edited = edited_by(inference.graph, scenario, {});
    return predict_edited(baseline, inference, scenario, edited,
                          {.trust = baseline.weighs_changes});
  }
  Prediction prediction = baseline.prediction;
  note_question(scenario, prediction);
  prediction =
      as_recorded(inference, baseline.replayed, std::move(prediction), scenario, {}).prediction;
  const StepVariation* const variation = baseline.variation ? &*baseline.variation : nullptr;
  set_interval(inference, inference.graph, variation, baseline.own, prediction);
  if (baseline.weighs_changes) judge(inference, inference.graph, baseline.own, prediction);
  return prediction;
}

Prediction predict_slowest(const std::vector<Baseline>& baselines, const Job& job,
                           const Scenario& scenario) {
  check_ranks(scenario, job);
  Prediction worst;
  std::vector<MemoryPeak> peaks;
  Slowest slowest;
  Fullest fullest;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    Prediction next = predict_on(baselines[i], job.ranks[i].inference, scenario);
    if (fullest.consider(i, need_of(next.predicted_memory))) peaks = next.predicted_memory;
    if (slowest.consider(i, next.predicted.step_time)) worst = std::move(next);
  }
  worst.predicted_memory = std::move(peaks);
  return worst;
}

void compare_with(const RecordedRun& recorded, Prediction& prediction) {
  static_cast<RecordedRun&>(prediction) = recorded;
  prediction.speedup = ratio(prediction.baseline.step_time, prediction.predicted.step_time);
}

}  // namespace foretrace
