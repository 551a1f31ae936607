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
#include "ask/interval/resampled_job.h"
#include "ask/job/apply.h"
#include "ask/job/chosen_rank.h"
#include "ask/job/job.h"
#include "ask/job/lane_work.h"
#include "ask/job/memory_peaks.h"
#include "ask/predict/baseline.h"
#include "ask/predict/explain.h"
#include "ask/predict/prediction_html.h"
#include "ask/predict/ranks.h"
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
  std::vector<Answer> others = {};  ///< Of the other ranks, if their timelines are wanted.
};

/// Whether a file for each rank is asked for.
bool wants_folder(const PredictOptions& options) { return options.perfetto_path.ends_with('/'); }

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
                  std::span<const KnownOutcome> own, Prediction& prediction,
                  const DoubtedRanks* ranks = nullptr) {
  const IntervalInputs inputs = interval_inputs({.inference = inference,
                                                 .changed = changed,
                                                 .prediction = prediction,
                                                 .variation = variation,
                                                 .own = own,
                                                 .ranks = ranks});
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
void set_interval(const Inference& inference, std::span<const KnownOutcome> own, Answer& answer,
                  const DoubtedRanks* ranks = nullptr) {
  Prediction& prediction = answer.prediction;
  const Graph& changed = prediction.steps.empty() ? inference.graph : answer.graph;
  std::optional<StepVariation> variation;
  if (prediction.has_times) variation = variation_of(inference);
  set_interval(inference, changed, variation ? &*variation : nullptr, own, prediction, ranks);
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

/// `edited` is empty where the scenario edits nothing.
Answer answer(const Inference& inference, const Scenario& scenario, Timeline replayed,
              std::optional<Edited> edited, const PredictOptions& options, bool has_times = true) {
  Prediction prediction = described_baseline(inference, replayed);
  prediction.has_times = has_times;
  prediction.baseline_rates = rates_of(inference.graph, replayed, scenario);
  prediction.predicted_rates = changed_rates(prediction.baseline_rates, scenario);
  note_question(scenario, prediction);
  if (edited) return what_if(std::move(*edited), std::move(prediction), scenario, options);
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
Answer answer(const Job& job, const Rank& rank, const Scenario& scenario, Timeline replayed,
              std::optional<Edited> edited, const PredictOptions& options) try {
  Answer result = answer(rank.inference, scenario, std::move(replayed), std::move(edited), options,
                         !rank.is_snapshot);
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
                                           std::to_string(job.world[fullest.chosen.rank()].number));
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

/// Both replays of a job: as recorded, and as the scenario leaves it.
struct Replays {
  JointReplay recorded;
  std::optional<EditedJob> edited;

  /// The one that the question is about.
  const JointReplay& asked() const { return edited ? edited->replay : recorded; }
};

Replays replays_of(const Job& job, const Scenario& scenario, const PredictOptions& options,
                   Donors& donors) {
  const bool is_edited = edits(scenario);
  Replays all;
  on_all_cores(is_edited ? 2 : 1, [&](std::size_t side) {
    if (side == 0)
      all.recorded = replay(job, graphs_of(job),
                            {.reasons = options.explain && !is_edited,
                             .keeps_rows = !is_edited,
                             .folds = !options.exact});
    else
      all.edited = edited_by(
          job, scenario, {.reasons = options.explain, .keeps_rows = true, .folds = !options.exact},
          &donors);
  });
  return all;
}

/// By rank of the world; none for a rank like one before it. Moves graphs and times.
std::vector<Answer> answers_of(const Job& job, const Scenario& scenario, Replays& replays,
                               const PredictOptions& options) {
  std::vector<Answer> answers(job.world.size());
  on_all_cores(answers.size(), [&](std::size_t i) {
    if (replays.asked().alike[i] != i) return;
    const Rank& rank = job.ranks[job.world[i].recorded];
    if (replays.edited)
      answers[i] = answer(job, rank, scenario, replays.recorded.of(i),
                          std::move(replays.edited->ranks[i]), options);
    else
      answers[i] =
          answer(job, rank, scenario, std::move(replays.recorded.timelines[i]), {}, options);
  });
  return answers;
}

/// The recorded ranks but the one that is shown. Moves their answers.
std::vector<Answer> others_of(const Job& job, std::size_t shown, std::vector<Answer>& answers) {
  std::vector<Answer> others;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i == shown || !answers[i].recorded || !job.world[i].is_recorded) continue;
    answers[i].prediction.rank = job.world[i].number;
    others.push_back(std::move(answers[i]));
  }
  return others;
}

/// The rank with the longest predicted step, as the others wait for it, compared with the rank that
/// had the longest step before.
Answer slowest(const Job& job, const Scenario& scenario, const PredictOptions& options) {
  Donors donors(options.reading);
  donors.read(scenario);
  const std::vector<KnownOutcome> own = own_outcomes(options.ledger_path);
  Replays replays = replays_of(job, scenario, options, donors);
  std::vector<Answer> answers = answers_of(job, scenario, replays, options);
  RecordedRun recorded;
  Slowest predicted_slowest, recorded_slowest;
  FullestPeaks fullest;
  std::vector<PredictedRank> ranks;
  std::vector<std::vector<AppliedStep>> steps;
  std::vector<std::size_t> row(job.world.size());
  std::string all;
  for (std::size_t i = 0; i < job.world.size(); ++i) {
    if (const std::size_t first = replays.asked().alike[i]; first != i) {
      ++ranks[row[first]].alike;
      continue;
    }
    const Prediction& prediction = answers[i].prediction;
    row[i] = ranks.size();
    ranks.push_back(rank_described(job, i, prediction));
    steps.push_back(prediction.steps);
    all += (i == 0 ? "rank " : ", rank ") + std::to_string(job.world[i].number) + ": ";
    if (edits(scenario)) all += to_text(prediction.baseline.step_time) + " -> ";
    all += to_text(prediction.predicted.step_time);
    if (recorded_slowest.consider(i, prediction.baseline.step_time)) recorded = prediction;
    fullest.consider(i, prediction);
    predicted_slowest.consider(i, prediction.predicted.step_time);
  }
  const std::size_t shown = predicted_slowest.rank();
  const bool is_another = recorded_slowest.rank() != shown;
  Answer& worst = answers[shown];
  const ResampledJob resampled(job, replays.asked(), shown, [&](std::size_t i) -> const Graph& {
    return replays.edited ? answers[i].graph : job.ranks[job.world[i].recorded].inference.graph;
  });
  set_interval(job.ranks[job.world[shown].recorded].inference, own, worst, resampled.doubted());
  Prediction& prediction = worst.prediction;
  if (is_another) compare_with(recorded, prediction);
  take_peaks(std::move(fullest), job, prediction);
  set_memory_interval(prediction);
  widen_for_missing_ranks(job, prediction);
  if (const JointReplay& asked = replays.asked(); asked.joint)
    prediction.explained = explain(asked.joint->graph(), asked.times);
  prediction.rank = job.world[shown].number;
  if (job.world.size() == 1) return std::move(worst);
  prediction.ranks = std::move(ranks);
  for (std::size_t i = 0; i < steps.size(); ++i)
    tell_steps_of(prediction.ranks[i].number, steps[i], prediction.steps);
  if (edits(scenario)) prediction.trust.reasons.push_back(ranks_joined(job));
  if (const auto missing = ranks_missing(job)) prediction.trust.reasons.push_back(*missing);
  add_warnings(job, job.world[shown].recorded, prediction.notes);
  std::string text =
      job.is_joined() ? "ranks wait for each other" : "each rank was predicted alone";
  text += "; the answer is the slowest, " + rank_text(prediction, job.world.size());
  if (is_another)
    text += "; as recorded it is rank " +
            std::to_string(job.world[recorded_slowest.rank()].number) + " with " +
            to_text(recorded.baseline.step_time);
  prediction.notes.add(Severity::info, text, all);
  if (wants_folder(options)) worst.others = others_of(job, shown, answers);
  return std::move(worst);
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

/// One file for each rank, so that the folder is read back as the job is.
void write_timelines(const Answer& answer, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder + ": cannot be made: " + error.message());
  if (!fs::is_empty(folder, error))
    throw Error(folder + ": must be a new or an empty folder, for a file of each rank");
  const auto path_of = [&](std::int32_t rank) {
    return folder + "rank" + std::to_string(rank) + ".json.gz";
  };
  write_timeline(answer, path_of(answer.prediction.rank));
  for (const Answer& other : answer.others) write_timeline(other, path_of(other.prediction.rank));
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
  if (wants_folder(options))
    write_timelines(answer, options.perfetto_path);
  else if (!options.perfetto_path.empty())
    write_timeline(answer, options.perfetto_path);
  if (!options.html_path.empty()) {
    const bool is_what_if = !answer.prediction.steps.empty();
    write_prediction_html(*answer.recorded, is_what_if ? &answer.graph : nullptr, answer.prediction,
                          options.html_path);
  }
}

}  // namespace

Prediction predict(const std::string& trace_path, const Scenario& scenario,
                   const PredictOptions& options) {
  const Job job = read_job(trace_path, {.reading = options.reading,
                                        .keep_traces = !options.perfetto_path.empty(),
                                        .joining = Joining::required,
                                        .world_size = options.world_size});
  check_ranks(scenario, job);
  Answer answer = slowest(job, scenario, options);
  answer.prediction.inputs = job.inputs();
  finish(answer, options);
  return std::move(answer.prediction);
}

Prediction predict(const Inference& inference, const Scenario& scenario,
                   const PredictOptions& options) {
  check_ranks(scenario, inference.graph);
  Donors donors(options.reading);
  donors.read(scenario);
  const std::vector<KnownOutcome> own = own_outcomes(options.ledger_path);
  std::optional<Edited> edited;
  if (edits(scenario))
    edited = edited_by(inference.graph, scenario, {.reasons = options.explain}, &donors);
  Timeline replayed = simulate(inference.graph, {.reasons = options.explain && !edited});
  Answer result = answer(inference, scenario, std::move(replayed), std::move(edited), options);
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
                      const Scenario& scenario, Donors* donors) {
  if (edits(scenario)) {
    Edited edited = edited_by(inference.graph, scenario, {}, donors);
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
                           const Scenario& scenario, Donors* donors) {
  check_ranks(scenario, job);
  std::optional<EditedJob> edited;
  if (job.world.size() > 1 && edits(scenario)) edited = edited_by(job, scenario, {}, donors);
  Prediction worst;
  std::vector<MemoryPeak> peaks;
  Slowest slowest;
  Fullest fullest;
  for (std::size_t i = 0; i < job.world.size(); ++i) {
    const std::uint32_t recorded = job.world[i].recorded;
    const Baseline& baseline = baselines[recorded];
    const Inference& inference = job.ranks[recorded].inference;
    if (edited ? edited->replay.alike[i] != i : !job.world[i].is_recorded) continue;
    Prediction next = edited ? predict_edited(baseline, inference, scenario, edited->ranks[i],
                                              {.trust = baseline.weighs_changes})
                             : predict_on(baseline, inference, scenario, donors);
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
