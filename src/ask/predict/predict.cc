#include "foretrace/ask/predict.h"

#include <optional>
#include <utility>

#include "ask/interval/memory_interval.h"
#include "ask/interval/resampled_job.h"
#include "ask/job/apply.h"
#include "ask/job/chosen_rank.h"
#include "ask/job/job.h"
#include "ask/job/memory_peaks.h"
#include "ask/job/rank_facts.h"
#include "ask/predict/answer.h"
#include "ask/predict/baseline.h"
#include "ask/predict/explain.h"
#include "ask/predict/finish.h"
#include "ask/predict/predict_job.h"
#include "ask/predict/ranks.h"
#include "ask/predict/trust.h"
#include "base/threads.h"
#include "foretrace/ask/ledger.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// Memory peaks of the rank that decides whether the job fits.
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

/// Adds the import warnings of ranks other than the one that is shown.
void add_warnings(const Job& job, std::size_t shown, Notes& notes) {
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    if (i == shown) continue;
    for (const Note& note : job.ranks[i].import_notes.all()) {
      if (note.severity != Severity::warning) continue;
      notes.add(note.severity, note.text, note.example, note.count);
    }
  }
}

/// Both replays of a job: as recorded, and after the scenario.
struct Replays {
  JointReplay recorded;
  std::optional<EditedJob> edited;

  /// The replay that the question is about.
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
                             .most_rows_kept = is_edited ? 0 : kMostTasksDrawn,
                             .folds = !options.exact});
    else
      all.edited = edited_by(
          job, scenario,
          {.reasons = options.explain, .most_rows_kept = kMostTasksDrawn, .folds = !options.exact},
          &donors);
  });
  return all;
}

/// Returns the answers by rank of the world; empty for a rank that is like an earlier one. Moves
/// graphs and times out of `replays`.
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

/// The answers about the recorded ranks other than the one that is shown. Moves them.
std::vector<Answer> others_of(const Job& job, std::size_t shown, std::vector<Answer>& answers) {
  std::vector<Answer> others;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i == shown || !answers[i].recorded || !job.world[i].is_recorded) continue;
    answers[i].prediction.rank = job.world[i].number;
    answers[i].place = static_cast<std::uint32_t>(i);
    others.push_back(std::move(answers[i]));
  }
  return others;
}

/// Most ranks whose times a note lists.
constexpr std::size_t kMostListed = 8;

/// The answer about the rank with the longest predicted step, which the others wait for, compared
/// with the rank that had the longest step as recorded.
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
    if (ranks.size() <= kMostListed) {
      all += (i == 0 ? "rank " : ", rank ") + std::to_string(job.world[i].number) + ": ";
      if (edits(scenario)) all += to_text(prediction.baseline.step_time) + " -> ";
      all += to_text(prediction.predicted.step_time);
    } else if (ranks.size() == kMostListed + 1) {
      all += " ...";
    }
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
  widen_for_added_ranks(scenario, prediction);
  if (const JointReplay& asked = replays.asked(); asked.joint)
    prediction.explained = explain(asked.joint->graph(), asked.times);
  prediction.rank = job.world[shown].number;
  if (job.world.size() == 1) return std::move(worst);
  prediction.ranks = std::move(ranks);
  for (std::size_t i = 0; i < steps.size(); ++i)
    report_steps_of(prediction.ranks[i].number, steps[i], prediction);
  drop_notes_on_effects(prediction);
  if (edits(scenario)) prediction.trust.reasons.push_back(ranks_joined(job));
  if (const auto missing = ranks_missing(job)) prediction.trust.reasons.push_back(*missing);
  add_warnings(job, job.world[shown].recorded, prediction.notes);
  note_ranks(job, prediction.notes);
  if (job.has_snapshots()) {
    prediction.notes.add(Severity::info,
                         "each snapshot was replayed alone; each peak is the highest of them all");
  } else {
    std::string text =
        job.is_joined() ? "ranks wait for each other" : "each rank was predicted alone";
    text += "; the answer is the slowest, " + rank_text(prediction, job.world.size());
    if (is_another)
      text += "; as recorded it is rank " +
              std::to_string(job.world[recorded_slowest.rank()].number) + " with " +
              to_text(recorded.baseline.step_time);
    prediction.notes.add(Severity::info, text, all);
  }
  if (options.perfetto_path.empty()) return std::move(worst);
  worst.place = static_cast<std::uint32_t>(shown);
  worst.others = others_of(job, shown, answers);
  if (job.is_joined()) worst.job = &job;
  return std::move(worst);
}

}  // namespace

Prediction predict(const Job& job, const std::vector<InputFile>& inputs, const Scenario& scenario,
                   const PredictOptions& options) {
  check_ranks(scenario, job);
  Answer answer = slowest(job, scenario, options);
  answer.prediction.inputs = inputs;
  finish(answer, options);
  return std::move(answer.prediction);
}

Prediction predict(const std::string& trace_path, const Scenario& scenario,
                   const PredictOptions& options) {
  const Job job = read_job(trace_path, {.reading = options.reading,
                                        .keep_traces = !options.perfetto_path.empty(),
                                        .joining = Joining::required,
                                        .world_size = options.world_size});
  return predict(job, job.inputs(), scenario, options);
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
  widen_for_added_ranks(scenario, result.prediction);
  finish(result, options);
  return std::move(result.prediction);
}

}  // namespace foretrace
