#include "foretrace/question/predict.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/doubt/memory_interval.h"
#include "analysis/doubt/resample.h"
#include "analysis/doubt/trust.h"
#include "analysis/memory/memory_peaks.h"
#include "analysis/place/work_group.h"
#include "base/threads.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/graph.h"
#include "foretrace/job.h"
#include "foretrace/ledger.h"
#include "foretrace/render.h"
#include "foretrace/simulate.h"
#include "job/apply.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "question/predict/baseline.h"
#include "question/predict/explain.h"
#include "question/predict/rank_lanes.h"
#include "question/predict/ranks.h"
#include "question/predict/rates.h"
#include "question/predict/replayed_rank.h"
#include "question/predict/sensitivities.h"

namespace foretrace {
namespace {

// Makes the HTML page of an answer: the recorded and the changed job are replayed once more, with
// the reasons for every start, and the predicted job is examined for what its step time depends on.

/// Rows in each table of the critical path.
constexpr std::size_t kRowsOfPath = 20;

std::vector<Explained> path_of(const Graph& graph, const Timeline& timeline) {
  return explain(graph, timeline, kRowsOfPath);
}

/// Calls `take` with the page; `is_whole`: with its sensitivities, which take many replays.
/// The graph of `answer` is that of the prediction if it has steps.
void show_page(const ReplayedRank& answer, bool is_whole,
               const std::function<void(const PredictionPage&)>& take) {
  const Prediction& prediction = answer.prediction;
  const Graph& recorded = *answer.recorded;
  const Graph* const changed = prediction.steps.empty() ? nullptr : &answer.graph;
  const Timeline now = simulate(recorded, {.reasons = true});
  Timeline then;
  PredictionPage page{.prediction = prediction,
                      .now = {recorded, now, path_of(recorded, now)},
                      .predicted = {},
                      .sensitivities = {},
                      .ranks = answer.ranks};
  if (changed != nullptr) {
    then = simulate(*changed, {.reasons = true});
    page.predicted.emplace(DrawnRun{*changed, then, path_of(*changed, then)});
  }
  if (is_whole && prediction.has_times)
    page.sensitivities =
        sensitivities_of(changed != nullptr ? *changed : recorded, prediction.predicted.step_time);
  take(page);
}

// Writes the files that a prediction leaves behind, and refuses answers under --strict.

void refuse_warnings(const Notes& notes) {
  for (const Note& note : notes.all()) {
    if (note.severity != Severity::warning) continue;
    std::string detail = note.count > 1 ? fmt::format("{} times", note.count) : "";
    if (!note.example.empty()) detail += (detail.empty() ? "" : ", first: ") + note.example;
    throw TraceError(fmt::format("refused because of --strict: {}{}", note.text,
                                 detail.empty() ? "" : fmt::format(" ({})", detail)));
  }
}

/// Writes the timeline in the format of the path's ending, or in that of PyTorch's profiler for an
/// unknown ending.
void write_timeline(const ReplayedRank& answer, const std::string& path) {
  const ExporterEntry* exporter = exporter_for(path);
  if (exporter == nullptr) exporter = exporter_for(".json");
  exporter->write(render(answer.graph, answer.timeline, answer.trace), path);
}

/// Writes one file for each rank, so that the folder is read back as the same job.
void write_timelines(const ReplayedRank& answer, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: cannot be made: {}", folder, error.message()));
  if (!fs::is_empty(folder, error))
    throw Error(folder + ": must be a new or an empty folder, for a file of each rank");
  const auto path_of = [&](std::int32_t rank) {
    return fmt::format("{}rank{}.json.gz", folder, rank);
  };
  write_timeline(answer, path_of(answer.prediction.rank));
  for (const ReplayedRank& other : answer.others)
    write_timeline(other, path_of(other.prediction.rank));
}

/// Writes all ranks on one clock, with arrows from the ranks that others wait for.
void write_ranks(const ReplayedRank& answer, const std::string& path) {
  std::vector<const ReplayedRank*> all{&answer};
  for (const ReplayedRank& other : answer.others) all.push_back(&other);
  std::ranges::sort(all, {}, [](const ReplayedRank* drawn) { return drawn->prediction.rank; });
  std::vector<const Graph*> graphs(answer.job->world.size());
  std::map<std::uint32_t, std::size_t> index_drawn;  // By index in the world.
  for (std::size_t i = 0; i < all.size(); ++i) {
    graphs[all[i]->world_index] = &all[i]->graph;
    index_drawn.emplace(all[i]->world_index, i);
  }
  const std::vector<RankGraph> begins = rank_graphs(*answer.job, graphs);
  std::vector<RankTimeline> ranks;
  for (const ReplayedRank* drawn : all)
    ranks.push_back({&drawn->graph, &drawn->timeline, drawn->trace, drawn->prediction.rank,
                     begins[drawn->world_index].begins});
  std::vector<std::vector<RankTask>> collectives;
  for (const MatchedCollective& collective : answer.job->join.collectives) {
    std::vector<RankTask>& members = collectives.emplace_back();
    for (const CollectiveMember& member : collective.members) {
      const auto found = index_drawn.find(member.rank);
      if (found != index_drawn.end()) members.push_back({found->second, member.task});
    }
  }
  const RenderedRanks rendered = render_ranks(ranks, collectives);
  if (!export_ranks(rendered.trace, rendered.view, path))
    throw Error(
        fmt::format("'{}' would hold one rank, and there are {}; give a folder, as in out/, for "
                    "a file of each, or .json.gz or .pftrace for a picture of all",
                    path, all.size()));
}

void refuse_poor(const Trust& trust) {
  if (trust.grade() == Grade::poor)
    throw TraceError("refused because of --strict: trust is " + trust_warning(trust));
}

/// Whether the path of the timeline is a folder, for the ranks of a job.
bool wants_file_for_each_rank(const PredictOptions& options) {
  return options.perfetto_path.ends_with('/');
}

/// Writes the timelines and the page that the options ask for. Throws TraceError under --strict if
/// the answer has warnings or poor trust, and Error if a file cannot be written.
void finish(const ReplayedRank& answer, const PredictOptions& options) {
  if (options.strict) {
    refuse_warnings(answer.prediction.notes);
    refuse_poor(answer.prediction.trust);
  }
  const bool has_one_rank = answer.job == nullptr || answer.others.empty();
  if (wants_file_for_each_rank(options))
    write_timelines(answer, options.perfetto_path);
  else if (!options.perfetto_path.empty())
    has_one_rank ? write_timeline(answer, options.perfetto_path)
                 : write_ranks(answer, options.perfetto_path);
  if (options.take_page) show_page(answer, options.page_is_whole, options.take_page);
}

/// Memory peaks of the rank that decides whether the job fits.
struct FullestPeaks {
  FullestRank chosen;
  std::vector<MemoryPeak> now, predicted;

  void consider(std::size_t rank, const Prediction& prediction) {
    if (!chosen.consider(rank, need_of(prediction.predicted_memory))) return;
    now = prediction.baseline_memory;
    predicted = prediction.predicted_memory;
  }
};

void take_peaks(FullestPeaks fullest, const JobRanks& job, Prediction& prediction) {
  if (fullest.chosen.most() <= need_of(prediction.predicted_memory)) return;
  prediction.baseline_memory = std::move(fullest.now);
  prediction.predicted_memory = std::move(fullest.predicted);
  prediction.notes.add(Severity::info,
                       fmt::format("peaks of memory are those of the fullest, rank {}",
                                   job.world[fullest.chosen.rank()].number));
}

/// Adds the import warnings of ranks other than the one that is shown.
void add_warnings(const JobRanks& job, std::size_t shown, Notes& notes) {
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
  const JointReplay& answered() const { return edited ? edited->replay : recorded; }
};

Replays replays_of(const JobRanks& job, std::optional<SharedEdits> edits,
                   const PredictOptions& options) {
  const bool is_edited = edits.has_value();
  Replays all;
  on_all_cores(is_edited ? 2 : 1, [&](std::size_t side) {
    if (side == 0)
      all.recorded = replay(job, graphs_of(job),
                            {.reasons = options.explain && !is_edited,
                             .most_rows_kept = is_edited ? 0 : kMaxTasksResampled,
                             .folds = !options.exact});
    else
      all.edited = replayed(job, std::move(*edits),
                            {.reasons = options.explain,
                             .most_rows_kept = kMaxTasksResampled,
                             .folds = !options.exact});
  });
  return all;
}

/// The answers by rank of the world; nullptr for a rank that is like an earlier one, as almost all
/// of a million ranks are.
using Answers = std::vector<std::unique_ptr<ReplayedRank>>;

/// Moves graphs and times out of `replays`.
Answers answers_of(const JobRanks& job, const Scenario& scenario, Replays& replays,
                   const PredictOptions& options) {
  Answers answers(job.world.size());
  on_all_cores(answers.size(), [&](std::size_t i) {
    if (replays.answered().first_alike[i] != i) return;
    const Rank& rank = job.ranks[job.world[i].recorded];
    answers[i] = std::make_unique<ReplayedRank>(
        replays.edited
            ? answer(job, rank, scenario, replays.recorded.of(i),
                     std::move(replays.edited->ranks[i]), options)
            : answer(job, rank, scenario, std::move(replays.recorded.timelines[i]), {}, options));
  });
  return answers;
}

/// The answers about the recorded ranks other than the one that is shown. Moves them.
std::vector<ReplayedRank> others_of(const JobRanks& job, std::size_t shown, Answers& answers) {
  std::vector<ReplayedRank> others;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i == shown || !answers[i] || !answers[i]->recorded || !job.world[i].is_recorded) continue;
    answers[i]->prediction.rank = job.world[i].number;
    answers[i]->world_index = static_cast<std::uint32_t>(i);
    others.push_back(std::move(*answers[i]));
  }
  return others;
}

/// Most ranks whose times a note lists.
constexpr std::size_t kMaxRanksListed = 8;

/// A summary of the answers of all ranks.
struct RankSummary {
  RankSummary(const JobRanks& job, const Scenario& scenario, const JointReplay& answered,
              const Answers& answers);

  /// The rank with the longest predicted step, which the others wait for.
  std::size_t shown() const { return predicted_slowest.rank(); }
  bool slowest_changes() const { return recorded_slowest.rank() != shown(); }

  RecordedRun recorded;  ///< Of the rank with the longest recorded step.
  SlowestRank predicted_slowest, recorded_slowest;
  FullestPeaks fullest;
  std::vector<PredictedRank> ranks;             ///< Without those that are like an earlier one.
  std::vector<std::vector<AppliedStep>> steps;  ///< For each of `ranks`.
  std::string step_times;                       ///< Listed for a note.
};

RankSummary::RankSummary(const JobRanks& job, const Scenario& scenario, const JointReplay& answered,
                         const Answers& answers) {
  std::vector<std::size_t> row_of_rank(job.world.size());
  for (std::size_t i = 0; i < job.world.size(); ++i) {
    if (const std::size_t first = answered.first_alike[i]; first != i) {
      ++ranks[row_of_rank[first]].alike;
      continue;
    }
    const Prediction& prediction = answers[i]->prediction;
    row_of_rank[i] = ranks.size();
    ranks.push_back(rank_described(job, i, prediction));
    steps.push_back(prediction.steps);
    if (ranks.size() <= kMaxRanksListed) {
      step_times += fmt::format("{}rank {}: ", i == 0 ? "" : ", ", job.world[i].number);
      if (edits(scenario))
        step_times += fmt::format("{} -> ", to_text(prediction.baseline.step_time));
      step_times += to_text(prediction.predicted.step_time);
    } else if (ranks.size() == kMaxRanksListed + 1) {
      step_times += " ...";
    }
    if (recorded_slowest.consider(i, prediction.baseline.step_time)) recorded = prediction;
    fullest.consider(i, prediction);
    predicted_slowest.consider(i, prediction.predicted.step_time);
  }
}

/// Adds what an answer about a job of several ranks says beyond its slowest rank.
void describe_ranks(const JobRanks& job, const Scenario& scenario, RankSummary& summary,
                    Prediction& prediction) {
  prediction.ranks = std::move(summary.ranks);
  for (std::size_t i = 0; i < summary.steps.size(); ++i)
    report_steps_of(prediction.ranks[i].number, summary.steps[i], prediction);
  drop_notes_on_effects(prediction);
  if (edits(scenario)) prediction.trust.reasons.push_back(ranks_joined(job));
  if (const auto missing = ranks_missing(job)) prediction.trust.reasons.push_back(*missing);
  add_warnings(job, job.world[summary.shown()].recorded, prediction.notes);
  note_ranks(job, prediction.notes);
  if (job.has_snapshots())
    return prediction.notes.add(
        Severity::info, "each snapshot was replayed alone; each peak is the highest of them all");
  std::string as_recorded;
  if (summary.slowest_changes())
    as_recorded = fmt::format("; as recorded it is rank {} with {}",
                              job.world[summary.recorded_slowest.rank()].number,
                              to_text(summary.recorded.baseline.step_time));
  prediction.notes.add(
      Severity::info,
      fmt::format("{}; the answer is the slowest, {}{}",
                  job.is_joined() ? "ranks wait for each other" : "each rank was predicted alone",
                  rank_text(prediction, job.world.size()), as_recorded),
      summary.step_times);
}

/// The answer about the rank with the longest predicted step, compared with the rank that had the
/// longest step as recorded. The scenario is applied, the job replayed and each rank answered in
/// turn.
ReplayedRank slowest_answer(const JobRanks& job, const Scenario& scenario,
                            const PredictOptions& options, const ImportOptions& reading) {
  Donors donors(reading);
  donors.read(scenario);
  const std::vector<KnownOutcome> user_outcomes = read_user_outcomes(options.ledger_path);
  std::optional<SharedEdits> edited;
  if (edits(scenario)) edited = shared_edits(job, scenario, &donors);
  Replays replays = replays_of(job, std::move(edited), options);
  Answers answers = answers_of(job, scenario, replays, options);
  RankSummary summary(job, scenario, replays.answered(), answers);
  const std::size_t shown = summary.shown();
  ReplayedRank& answer = *answers[shown];
  const auto graph_of = [&](std::size_t i) -> const Graph& {
    return replays.edited ? answers[i]->graph : job.ranks[job.world[i].recorded].inference.graph;
  };
  const ResampledJob resampled(job, replays.answered(), shown, graph_of);
  set_interval(job.ranks[job.world[shown].recorded].inference, user_outcomes, answer,
               resampled.joint_ranks());
  Prediction& prediction = answer.prediction;
  if (summary.slowest_changes()) {
    const WorldRank& rank = job.world[summary.recorded_slowest.rank()];
    examine_baseline(job.ranks[rank.recorded].inference, summary.recorded);
    compare_with(summary.recorded, prediction);
  }
  take_peaks(std::move(summary.fullest), job, prediction);
  set_memory_interval(prediction);
  widen_for_missing_ranks(job, prediction);
  widen_for_added_ranks(scenario, prediction);
  if (const JointReplay& answered = replays.answered(); answered.joint)
    prediction.explained = explain(answered.joint->graph(), answered.times);
  prediction.rank = job.world[shown].number;
  if (job.world.size() == 1) return std::move(answer);
  // These were replayed without the other ranks, and may belong to two ranks.
  prediction.baseline_unprofiled = prediction.predicted_unprofiled = 0ns;
  describe_ranks(job, scenario, summary, prediction);
  if (options.take_page) {
    std::vector<DrawnRank> runs;
    for (const std::uint32_t i : replays.answered().first_alike)
      runs.push_back({&graph_of(i), &answers[i]->timeline});
    answer.ranks = rank_lanes(job, runs, shown);
  }
  if (options.perfetto_path.empty()) return std::move(answer);
  answer.world_index = static_cast<std::uint32_t>(shown);
  answer.others = others_of(job, shown, answers);
  if (job.is_joined()) answer.job = &job;
  return std::move(answer);
}

}  // namespace

Prediction predict(const Job& job, const Scenario& scenario, const PredictOptions& options) {
  check_ranks(scenario, job.ranks());
  const bool has_traces = job.path().empty() || job.options().keeps_traces;
  if (!options.perfetto_path.empty() && !has_traces)
    throw Error(job.path() + ": was opened without JobOptions::keeps_traces, which timelines need");
  ReplayedRank answer = slowest_answer(job.ranks(), scenario, options, job.options().reading);
  answer.prediction.inputs = job.inputs();
  finish(answer, options);
  RepeatedStep step = repeated_step(job.ranks(), scenario, answer.prediction.predicted.step_time);
  step.lower = answer.prediction.lower, step.upper = answer.prediction.upper;
  answer.prediction.training = run_of(options.training, step);
  return std::move(answer.prediction);
}

}  // namespace foretrace
