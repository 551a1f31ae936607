#include "foretrace/question/check.h"

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/memory/memory_peaks.h"
#include "base/json_text.h"
#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/answer/check.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "foretrace/version.h"
#include "job/apply.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "question/check/job/changes.h"
#include "question/check/job/figures.h"
#include "question/check/job/job_summary.h"
#include "question/check/job/kernels.h"
#include "question/check/judge.h"
#include "question/check/same_job.h"
#include "question/common/straggler.h"
#include "question/predict/baseline.h"

namespace foretrace {
namespace {

// An observed job: one rank in full, and the facts about all ranks that its figures need.

/// One rank, as recorded or after a what-if.
struct CheckedRank {
  const Rank* source = nullptr;
  Graph edited;
  bool is_edited = false;
  Timeline replayed;
  std::vector<MemoryPeak> peaks;

  const Inference& inference() const { return source->inference; }
  const Trace& trace() const { return *source->trace; }
  const Graph& graph() const { return is_edited ? edited : inference().graph; }
  const Timeline& timeline() const { return is_edited ? replayed : inference().recorded; }
  Nanoseconds step_time() const { return step_times(graph(), timeline()).step_time; }
};

/// The rank that is examined, and facts about all ranks.
struct CheckedJob {
  CheckedRank rank;
  /// Step lengths of the slowest rank, if it is another one.
  std::optional<std::vector<std::int64_t>> slowest_steps;
  std::vector<MemoryPeak> highest_peaks;  ///< Of the rank that needs most memory.
  Notes notes;
};

struct Observation {
  ObservedJob job;
  Grouping grouping;
  JobKernels kernels;
  JobSummary summary;
};

/// Applies a scenario to the recorded ranks together, because they wait for each other, and returns
/// their edited graphs; none if the scenario edits nothing.
std::vector<Graph> edited_graphs(const JobRanks& job, const Scenario& scenario, Donors& donors) {
  std::vector<Graph> graphs;
  if (!edits(scenario)) return graphs;
  EditedJob edited = edited_by(job, scenario, {.memory = false, .folds = false}, &donors);
  for (Edited& rank : edited.ranks) graphs.push_back(std::move(rank.graph));
  return graphs;
}

CheckedRank checked_rank(const Rank& source, const Scenario& scenario, Graph* edited) {
  CheckedRank rank;
  rank.source = &source;
  rank.is_edited = edited != nullptr;
  if (edited) rank.edited = std::move(*edited);
  rank.replayed = simulate(rank.graph(), {.reasons = true});
  rank.peaks = memory_peaks(rank.graph(), rank.replayed, allocator_of(scenario));
  if (rank.step_time() <= 0ns && !source.is_snapshot)
    throw TraceError("nothing to check: no step of the trace takes any time");
  return rank;
}

/// Chooses rank `wanted`, that of the baseline, or the slowest rank if `wanted` is empty or not in
/// the job. REQUIRES: `job` keeps its traces and outlives the result.
CheckedJob checked_job(const JobRanks& job, const Scenario& scenario, Donors& donors,
                       std::optional<std::int32_t> wanted) {
  CheckedJob checked;
  SlowestRank slowest;
  FullestRank fullest;
  // A folder may contain several runs of one rank; then the slowest of them is judged.
  RankWithMost<std::pair<bool, Nanoseconds>> shown;
  std::vector<Graph> edited = edited_graphs(job, scenario, donors);
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Rank& source = job.ranks[i];
    CheckedRank rank = within(job.place(source), [&] {
      return checked_rank(source, scenario, edited.empty() ? nullptr : &edited[i]);
    });
    const Nanoseconds step = rank.step_time();
    if (fullest.consider(i, need_of(rank.peaks))) checked.highest_peaks = rank.peaks;
    if (slowest.consider(i, step))
      checked.slowest_steps = counted_lengths(step_times(rank.graph(), rank.timeline()));
    if (shown.consider(i, {wanted == source.number, step})) checked.rank = std::move(rank);
  }
  const std::int32_t slowest_rank = job.ranks[slowest.rank()].number;
  const std::int32_t shown_rank = job.ranks[shown.rank()].number;
  if (slowest_rank == shown_rank) checked.slowest_steps.reset();
  checked.notes.merge(checked.rank.source->import_notes);
  checked.notes.merge(checked.rank.inference().notes);
  note_ranks(job, checked.notes);
  if (job.ranks.size() > 1)
    checked.notes.add(
        Severity::info,
        fmt::format(
            "the step time is that of the slowest rank, {}; everything else is that of rank {}",
            slowest_rank, shown_rank));
  return checked;
}

Observation observation_of(const CheckedJob& job, const CallSites& sites,
                           std::optional<int> detail) {
  const CheckedRank& rank = job.rank;
  Observation observed{.job = {.trace = rank.trace(),
                               .graph = rank.graph(),
                               .timeline = rank.timeline(),
                               .replayed = rank.replayed,
                               .sites = sites,
                               .recorded_tasks = rank.inference().graph.task_count(),
                               .is_edited = rank.is_edited},
                       .grouping = {},
                       .kernels = {},
                       .summary = {}};
  observed.grouping = group_work(observed.job, detail);
  JobSummary& summary = observed.summary;
  summary.detail = observed.grouping.detail;
  summary.rank = rank.source->number;
  summary.groups = observed.grouping.groups;
  if (!rank.graph().device_names().empty())
    summary.device = lower_case(rank.graph().device_names().front());
  if (!rank.source->is_snapshot) {
    summary.figures = figures_of(observed.job);
    observed.kernels = kernels_of(observed.job);
    summary.kernels = observed.kernels.kernels;
    compare_kernels(summary, summary);
  }
  if (job.slowest_steps) summary.figures[kStepTime] = *job.slowest_steps;
  JobMemory memory = memory_of(observed.job);
  summary.memory = std::move(memory.groups);
  add_memory_figures({.peaks = job.highest_peaks, .growth = memory.growth}, summary.figures);
  return observed;
}

/// How much longer the collectives of a step take than in the baseline.
Nanoseconds growth_of_collectives(const CheckReport& report) {
  const auto found =
      std::find_if(report.figures.begin(), report.figures.end(),
                   [](const CheckedFigure& figure) { return figure.name == kCollectiveTime; });
  if (found == report.figures.end() || !found->before || !found->after) return 0ns;
  return Nanoseconds(*found->after - *found->before);
}

/// Whether the cause is that the same number of collectives takes longer.
bool is_waiting(const CheckCause& cause) {
  return cause.kind == to_string(TaskKind::collective) && cause.count_before == cause.count_after;
}

/// If the judged rank waits longer in its collectives than in the baseline because another rank
/// comes late, makes that rank the first cause, in place of the collectives. REQUIRES: `job` keeps
/// waits for other ranks open.
void name_late_rank(const JobRanks& job, std::int32_t checked_rank, CheckReport& report) {
  if (!job.is_joined()) return;
  const std::optional<LateRank> late = late_rank(job);
  if (!late || late->number == checked_rank) return;
  const Nanoseconds longer = std::min(late->others_wait, growth_of_collectives(report));
  if (longer < scaled(report.steps.step_time, kMuchWaiting)) return;
  std::erase_if(report.causes, is_waiting);
  CheckCause cause;
  cause.what = fmt::format("the other ranks wait for rank {}: {}", late->number, late->text);
  cause.kind = to_string(TaskKind::collective);
  cause.effect = longer;
  cause.figure = "step_time";
  report.causes.insert(report.causes.begin(), std::move(cause));
}

/// The scenario without the keys that say where the trace is and how to show the answer.
nlohmann::json asked_of(const Scenario& scenario) {
  nlohmann::json asked = write_scenario(scenario);
  for (const char* key : {"trace", "reports", "assert", "$schema"}) asked.erase(key);
  return asked;
}

std::string scenario_words(const Scenario& scenario) {
  std::string words;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) words += (words.empty() ? "" : ", ") + part;
  };
  if (!scenario.machine.empty()) add("on " + scenario.machine);
  for (const std::string& use : scenario.uses) add(use);
  return words.empty() ? "as recorded" : words;
}

/// The baseline as it will be read back: names may contain any bytes, but a file only text.
CheckBaseline as_written(CheckBaseline baseline) {
  return parse_baseline_text(write_baseline(baseline));
}

/// A hundredth of a step, cut to two digits ("1.4ms"); empty if that is 0.
std::string floor_text(const JobSummary& summary) {
  std::int64_t floor = step_time_of(summary).value_or(0ns).count() / 100;
  std::int64_t unit = 1;
  while (floor / unit >= 100) unit *= 10;
  floor = floor / unit * unit;
  std::string text = to_text(Nanoseconds(floor));
  std::erase(text, ' ');
  return floor > 0 ? text : "";
}

void set_limits(const CheckOptions& options, const CheckBaseline* old, CheckBaseline& baseline) {
  const std::string floor = floor_text(baseline.summary);
  const auto usual = [&](const FigureEntry& entry, std::string_view text,
                         std::map<std::string, Limit>& limits) {
    if (text.empty()) return;
    std::string limit(text);
    if (entry.limits.has_floor && !floor.empty()) limit += "+" + floor;
    limits[std::string(entry.name)] = parse_limit(limit, entry);
  };
  for (const auto& [name, values] : baseline.summary.figures) {
    const FigureEntry& entry = figure_entry(name);
    if (old != nullptr && old->summary.figures.contains(name)) {
      if (const auto limit = old->fail.find(name); limit != old->fail.end())
        baseline.fail[name] = limit->second;
      if (const auto limit = old->warn.find(name); limit != old->warn.end())
        baseline.warn[name] = limit->second;
      continue;
    }
    usual(entry, entry.limits.fail, baseline.fail);
    usual(entry, entry.limits.warn, baseline.warn);
  }
  for (const auto& [name, limit] : options.fail) baseline.fail[name] = limit;
  for (const auto& [name, limit] : options.warn) baseline.warn[name] = limit;
}

void refuse_unknown(const CheckOptions& options, const JobSummary& summary) {
  for (const auto* limits : {&options.fail, &options.warn}) {
    for (const auto& [name, limit] : *limits) {
      if (limit.is_off || summary.figures.contains(name)) continue;
      throw Error(fmt::format("the trace does not contain {} ({}), so it cannot be limited to {}",
                              name, figure_entry(name).says, limit.text));
    }
  }
}

CheckBaseline baseline_from(const Observation& observed, const Scenario& scenario) {
  CheckBaseline baseline;
  baseline.scenario = json_line(asked_of(scenario));
  baseline.tool = kVersion;
  baseline.summary = observed.summary;
  CheckBaseline written = as_written(std::move(baseline));
  written.fingerprint = structure_fingerprint(written.summary);
  // Files keep only the greatest value over the steps.
  for (std::size_t i = 0; i < written.summary.groups.size(); ++i)
    written.summary.groups[i].least = observed.summary.groups[i].least;
  for (std::size_t i = 0; i < written.summary.kernels.size(); ++i)
    written.summary.kernels[i].of_steps = observed.summary.kernels[i].of_steps;
  return written;
}

/// Names of the transforms of a scenario that is given as JSON text.
std::string used_in(const std::string& scenario) {
  std::string names;
  const nlohmann::json json = try_parse_json<nlohmann::json>(scenario);
  if (!json.is_object() || !json.contains("transforms") || !json["transforms"].is_array())
    return "not a known scenario";
  for (const nlohmann::json& step : json["transforms"]) {
    const bool is_named = step.is_object() && step.contains("use") && step["use"].is_string();
    names += (names.empty() ? "" : ", ") + (is_named ? step["use"].get<std::string>() : "unknown");
  }
  return names.empty() ? "the job as recorded" : names;
}

void refuse_other_scenario(const CheckBaseline& baseline, const Scenario& scenario) {
  const std::string asked = json_line(asked_of(scenario));
  if (asked == baseline.scenario) return;
  const std::string was = used_in(baseline.scenario), is = used_in(asked);
  throw Error(fmt::format(
      "the baseline must be of the same scenario; it is of {}, but the check is of {}{}; "
      "give each scenario its own baseline (--bless)",
      was, is, was == is ? " with other settings" : ""));
}

void note_differences(const CheckBaseline& baseline, const JobSummary& now, bool structure_only,
                      Notes& notes) {
  const std::string& was = baseline.summary.device;
  if (!structure_only && !was.empty() && !now.device.empty() && was != now.device)
    notes.add(Severity::warning,
              "the baseline was recorded on another device; --structure-only compares what does "
              "not depend on it",
              fmt::format("{}, now {}", was, now.device));
  const double compared = compared_share(baseline.summary.kernels, now.kernels);
  if (!structure_only && compared < 0.5)
    notes.add(Severity::info,
              "few kernels have the name, grid and input shapes of one in the baseline; the others "
              "are compared by place alone",
              fmt::format("{} % of the time of kernels is compared", to_fixed(100 * compared, 0)));
  if (!baseline.outdated.empty())
    notes.add(Severity::info,
              "metrics that an older baseline computes differently are not compared; update it "
              "with --bless",
              joined(baseline.outdated));
  if (baseline.summary.rank != now.rank)
    notes.add(Severity::warning, "the rank of the baseline is not in the trace",
              fmt::format("rank {}, compared with rank {}", baseline.summary.rank, now.rank));
}

/// Reads all ranks of a recording, which are replayed together if they belong to one job.
JobRanks checked_recording(const std::string& path, const CheckOptions& options) {
  return read_job(path, {.reading = options.reading,
                         .keep_traces = true,
                         .joining = Joining::if_one_job,
                         .keeps_waits_open = true});
}

/// The baseline of one recording, with the rank and the detail of `first`, if given.
CheckBaseline baseline_of_run(const std::string& path, const Scenario& scenario,
                              const CheckOptions& options, const CheckBaseline* first) {
  const JobRanks job = checked_recording(path, options);
  check_ranks(scenario, job);
  Donors donors(options.reading);
  donors.read(scenario);
  const CheckedJob checked = checked_job(
      job, scenario, donors, first == nullptr ? std::nullopt : std::optional(first->summary.rank));
  const CallSites sites(checked.rank.trace(), checked.rank.inference().graph);
  return baseline_from(
      observation_of(checked, sites,
                     first == nullptr ? std::nullopt : std::optional(first->summary.detail)),
      scenario);
}

/// Returns the run with the median step time, together with the figures of all runs.
CheckBaseline joined_runs(std::vector<CheckBaseline> runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const CheckBaseline& a, const CheckBaseline& b) {
    return step_time_of(a.summary) < step_time_of(b.summary);
  });
  CheckBaseline baseline = runs[(runs.size() - 1) / 2];
  if (runs.size() == 1) return baseline;
  std::map<std::string, std::vector<std::int64_t>> times;
  for (CheckBaseline& run : runs) {
    for (const KernelTimes& kernel : run.summary.kernels)
      times[kernel.key].push_back(kernel.each.count());
    compare_kernels(baseline.summary, run.summary);
    baseline.summary.runs.push_back(std::move(run.summary.figures));
  }
  for (KernelTimes& kernel : baseline.summary.kernels) kernel.runs = times[kernel.key];
  return baseline;
}

template <class Run>
void keep_newest(std::vector<Run>& runs) {
  if (runs.size() > kMaxRuns)
    runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(kMaxRuns));
}

/// Puts the runs of the old baseline before the new ones; only the newest kMaxRuns are kept.
void add_runs_of(const CheckBaseline& old, CheckBaseline& baseline) {
  refuse_other_job(old.summary, baseline.summary);
  JobSummary& now = baseline.summary;
  std::vector<FigureSteps> runs = old.summary.runs;
  if (runs.empty()) runs.push_back(old.summary.figures);
  if (now.runs.empty()) now.runs.push_back(now.figures);
  runs.insert(runs.end(), now.runs.begin(), now.runs.end());
  keep_newest(runs);
  now.runs = std::move(runs);
  std::map<std::string, std::vector<std::int64_t>> times;
  for (const KernelTimes& kernel : old.summary.kernels)
    times[kernel.key] = kernel.runs.empty() ? std::vector{kernel.each.count()} : kernel.runs;
  for (KernelTimes& kernel : now.kernels) {
    if (kernel.runs.empty()) kernel.runs.push_back(kernel.each.count());
    std::vector<std::int64_t>& all = times[kernel.key];
    all.insert(all.end(), kernel.runs.begin(), kernel.runs.end());
    keep_newest(all);
    kernel.runs = all;
  }
}

}  // namespace

CheckBaseline bless(const std::string& trace_path, const Scenario& scenario,
                    const CheckOptions& options, const CheckBaseline* old) {
  return bless(std::vector<std::string>{trace_path}, scenario, options, old);
}

CheckBaseline bless(const std::vector<std::string>& trace_paths, const Scenario& scenario,
                    const CheckOptions& options, const CheckBaseline* old) {
  if (trace_paths.size() > kMaxRuns)
    throw Error(fmt::format("a baseline stands for at most {} recordings, got {}", kMaxRuns,
                            trace_paths.size()));
  std::vector<CheckBaseline> runs;
  for (const std::string& path : trace_paths) {
    runs.push_back(
        baseline_of_run(path, scenario, options, runs.empty() ? nullptr : &runs.front()));
    if (runs.size() > 1)
      within(path, [&] { refuse_changed_job(runs.front().summary, runs.back().summary); });
  }
  CheckBaseline baseline = joined_runs(std::move(runs));
  if (options.adds_runs && old != nullptr) {
    within(trace_paths.front(), [&] { refuse_changed_job(old->summary, baseline.summary); });
    add_runs_of(*old, baseline);
  }
  refuse_unknown(options, baseline.summary);
  set_limits(options, old, baseline);
  return baseline;
}

CheckReport check(const std::string& trace_path, const Scenario& scenario,
                  const CheckBaseline& baseline, const CheckOptions& options) {
  refuse_other_scenario(baseline, scenario);
  const JobRanks job = checked_recording(trace_path, options);
  check_ranks(scenario, job);
  Donors donors(options.reading);
  donors.read(scenario);
  CheckedJob checked = checked_job(job, scenario, donors, baseline.summary.rank);
  const CheckedRank& rank = checked.rank;
  const CallSites sites(rank.trace(), rank.inference().graph);
  const Observation observed = observation_of(checked, sites, baseline.summary.detail);
  CheckBaseline now = baseline_from(observed, scenario);
  within(trace_path, [&] { refuse_other_job(baseline.summary, now.summary); });
  compare_kernels(baseline.summary, now.summary);
  refuse_unknown(options, now.summary);
  CheckReport report;
  report.inputs = job.inputs();
  report.scenario = scenario_words(scenario);
  report.structure_only = options.structure_only;
  if (!rank.source->is_snapshot) report.steps = step_times(rank.graph(), rank.timeline());
  report.same_structure = now.fingerprint == baseline.fingerprint;
  report.figures = judged_figures(baseline, now.summary, options);
  if (!options.structure_only) report.visible = visible_change(baseline, now.summary);
  if (!rank.source->is_snapshot)
    report.trust = trust_in_job(rank.inference(), rank.source->import_notes, rank.is_edited);
  leave_undecided(options, report);
  report.causes = causes_of({.job = observed.job,
                             .grouping = observed.grouping,
                             .kernels = observed.kernels,
                             .before = baseline.summary,
                             .after = now.summary,
                             .figures = report.figures});
  name_late_rank(job, rank.source->number, report);
  settle_effects(report);
  for (CheckCause& cause : report.causes) {
    cause.file = file_in_sources(cause.file, options.source_root);
    if (options.structure_only) cause.local = 0ns, cause.effect.reset();
  }
  report.notes = std::move(checked.notes);
  note_differences(baseline, now.summary, options.structure_only, report.notes);
  return report;
}

}  // namespace foretrace
