#include "foretrace/check.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/peak.h"
#include "foretrace/simulate.h"
#include "foretrace/version.h"
#include "scenario/apply.h"
#include "scenario/check/changes.h"
#include "scenario/check/job_summary.h"
#include "scenario/check/undecided.h"
#include "scenario/inputs.h"
#include "scenario/memory_peaks.h"

namespace foretrace {
namespace {

/// One rank, as recorded or after a what-if.
struct JudgedRank {
  const Trace* trace = nullptr;
  Inference inference;
  Graph edited;
  bool is_edited = false;
  Timeline replayed;
  std::vector<MemoryPeak> peaks;

  const Graph& graph() const { return is_edited ? edited : inference.graph; }
  const Timeline& timeline() const { return is_edited ? replayed : inference.recorded; }
  Nanoseconds step_time() const { return step_times(graph(), timeline()).step_time; }
};

JudgedRank judged_rank(const Trace& trace, const Scenario& scenario) {
  JudgedRank rank;
  rank.trace = &trace;
  rank.inference = infer(trace);
  rank.is_edited = edits(scenario);
  if (rank.is_edited) {
    rank.edited = rank.inference.graph.clone();
    apply(scenario, rank.edited);
  }
  rank.replayed = simulate(rank.graph(), {.reasons = true});
  rank.peaks = memory_peaks(rank.graph(), rank.replayed, allocator_of(scenario));
  if (rank.step_time() <= 0ns && !is_snapshot(trace))
    throw TraceError("nothing to check: no step of the trace takes any time");
  return rank;
}

/// The rank that is looked into, and what counts of all of them.
struct JudgedJob {
  JudgedRank rank;
  std::optional<std::vector<std::int64_t>> slowest_steps;  ///< Where another rank is slower.
  std::vector<MemoryPeak> fullest;
  Notes notes;
};

std::vector<std::int64_t> recorded_steps(const JudgedRank& rank) {
  const StepTimes times = step_times(rank.graph(), rank.timeline());
  std::vector<std::int64_t> steps;
  for (const Nanoseconds time : times.counted) steps.push_back(time.count());
  if (steps.empty()) steps.push_back(times.step_time.count());
  return steps;
}

/// `wanted`: the rank of the baseline; the slowest if there is none.
JudgedJob judged_job(const std::vector<Trace>& traces, const std::string& path,
                     const Scenario& scenario, std::optional<std::int32_t> wanted) {
  JudgedJob job;
  Nanoseconds slowest{-1}, shown_step{-1};
  bool has_wanted = false;
  std::int32_t slowest_rank = 0;
  for (const Trace& trace : traces) {
    const std::string place =
        traces.size() == 1 ? path : path + ": rank " + std::to_string(trace.rank);
    JudgedRank rank = within(place, [&] { return judged_rank(trace, scenario); });
    if (is_fuller(rank.peaks, job.fullest)) job.fullest = rank.peaks;
    const bool is_wanted = wanted == trace.rank;
    const Nanoseconds step = rank.step_time();
    if (step > slowest) {
      slowest = step, slowest_rank = trace.rank;
      job.slowest_steps = recorded_steps(rank);
    }
    // Several runs of one rank may lie in a folder; then it is the slowest again.
    if ((is_wanted && !has_wanted) || (is_wanted == has_wanted && step > shown_step)) {
      shown_step = step;
      job.rank = std::move(rank);
    }
    has_wanted = has_wanted || is_wanted;
  }
  const std::int32_t shown = job.rank.trace->rank;
  if (slowest_rank == shown) job.slowest_steps.reset();
  job.notes.merge(job.rank.trace->notes);
  job.notes.merge(job.rank.inference.notes);
  if (traces.size() > 1)
    job.notes.add(Severity::info, "the step time is that of the slowest rank, " +
                                      std::to_string(slowest_rank) + "; all else is that of rank " +
                                      std::to_string(shown));
  return job;
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

struct Observation {
  ObservedJob job;
  Grouping grouping;
  JobSummary summary;
};

void add_peaks(const JudgedJob& job, JobSummary& summary) {
  const auto add = [&](const char* name, const std::optional<Bytes>& peak) {
    if (peak && *peak > Bytes{}) summary.figures[name] = {peak->count};
  };
  add("peak_allocated", greatest_allocated(job.fullest));
  add("peak_reserved", greatest_reserved(job.fullest));
}

Observation observation_of(const JudgedJob& job, const CallSites& sites,
                           std::optional<int> detail) {
  const JudgedRank& rank = job.rank;
  Observation seen{.job = {.trace = *rank.trace,
                           .graph = rank.graph(),
                           .timeline = rank.timeline(),
                           .replayed = rank.replayed,
                           .sites = sites,
                           .recorded_tasks = rank.inference.graph.task_count(),
                           .is_edited = rank.is_edited},
                   .grouping = {},
                   .summary = {}};
  seen.grouping = group_work(seen.job, detail);
  JobSummary& summary = seen.summary;
  summary.detail = seen.grouping.detail;
  summary.rank = rank.trace->rank;
  summary.groups = seen.grouping.groups;
  if (!rank.graph().device_names().empty())
    summary.device = lower_case(rank.graph().device_names().front());
  if (!is_snapshot(*rank.trace)) summary.figures = figures_of(seen.job);
  // It is slower nowhere than it is itself.
  if (!is_snapshot(*rank.trace)) summary.figures["slower_places"] = {0};
  if (job.slowest_steps) summary.figures["step_time"] = *job.slowest_steps;
  MemoryOfJob memory = memory_of(seen.job);
  summary.memory = std::move(memory.groups);
  add_peaks(job, summary);
  if (memory.growth) summary.figures["memory_growth"] = {memory.growth->count};
  return seen;
}

/// What was asked, without where the trace is and how to show the answer.
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

/// As it will be read again: names may hold any bytes, and a file only text.
CheckBaseline as_written(CheckBaseline baseline) {
  return parse_baseline_text(write_baseline(baseline));
}

/// A hundredth of a step, in two digits: "1.4ms".
std::string floor_text(const JobSummary& summary) {
  const auto steps = summary.figures.find("step_time");
  if (steps == summary.figures.end()) return {};
  std::int64_t floor = figure_value(figure_entry("step_time"), steps->second) / 100;
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
    if (entry.has_floor && !floor.empty()) limit += "+" + floor;
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
    usual(entry, entry.fail, baseline.fail);
    usual(entry, entry.warn, baseline.warn);
  }
  for (const auto& [name, limit] : options.fail) baseline.fail[name] = limit;
  for (const auto& [name, limit] : options.warn) baseline.warn[name] = limit;
}

void refuse_unknown(const CheckOptions& options, const JobSummary& summary) {
  for (const auto* limits : {&options.fail, &options.warn}) {
    for (const auto& [name, limit] : *limits) {
      if (limit.is_off || summary.figures.contains(name)) continue;
      throw Error("the trace does not tell " + name + " (" + std::string(figure_entry(name).says) +
                  "), so it cannot be limited to " + limit.text);
    }
  }
}

CheckBaseline baseline_from(const Observation& seen, const Scenario& scenario) {
  CheckBaseline baseline;
  baseline.scenario =
      asked_of(scenario).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  baseline.tool = kVersion;
  baseline.summary = seen.summary;
  CheckBaseline written = as_written(std::move(baseline));
  written.fingerprint = structure_fingerprint(written.summary);
  return written;
}

const Limit* limit_of(const std::string& name, const std::map<std::string, Limit>& asked,
                      const std::map<std::string, Limit>& stored) {
  if (const auto found = asked.find(name); found != asked.end()) return &found->second;
  const auto found = stored.find(name);
  return found == stored.end() ? nullptr : &found->second;
}

std::int64_t slower_places(const JobSummary& before, const JobSummary& now) {
  const std::vector<WorkChange> changes =
      marked_changes(before, work_changes(before, now.groups).changes);
  return std::count_if(changes.begin(), changes.end(),
                       [](const WorkChange& change) { return change.stands_out; });
}

class Judge {
 public:
  Judge(const CheckBaseline& baseline, const JobSummary& now, const CheckOptions& options)
      : baseline_(baseline), now_(now), options_(options) {}

  std::vector<CheckedFigure> figures() const {
    std::vector<CheckedFigure> all;
    for (const FigureEntry& entry : figure_entries()) {
      const std::string name(entry.name);
      if (baseline_.summary.figures.contains(name) || now_.figures.contains(name))
        all.push_back(judged(entry, name));
    }
    return all;
  }

 private:
  CheckedFigure judged(const FigureEntry& entry, const std::string& name) const {
    CheckedFigure figure;
    figure.name = name, figure.says = entry.says, figure.unit = entry.unit;
    figure.less_is_worse = entry.less_is_worse;
    const auto then = baseline_.summary.figures.find(name);
    const auto now = now_.figures.find(name);
    if (then != baseline_.summary.figures.end()) figure.before = figure_value(entry, then->second);
    if (now != now_.figures.end()) figure.after = figure_value(entry, now->second);
    const Limit* fail = limit_of(name, options_.fail, baseline_.fail);
    const Limit* warn = limit_of(name, options_.warn, baseline_.warn);
    if (fail != nullptr) figure.limit = fail->text;
    if (warn != nullptr) figure.warn_limit = warn->text;
    figure.standing = Standing::left_out;
    if (options_.structure_only && entry.is_timed)
      return figure.why = "times are not compared", figure;
    if (!figure.before || !figure.after) {
      figure.why = figure.before ? "the trace does not tell" : "not in the baseline";
      // A gate that what it guards can leave unnoticed would be none.
      if (fail != nullptr && !fail->is_off)
        figure.standing = options_.undecided.value_or(Standing::undecided);
      return figure;
    }
    const StepChange change = step_change(entry, then->second, now->second);
    figure.lower = change.lower, figure.upper = change.upper;
    figure.standing = standing(change, figure, fail, warn);
    if (figure.standing == Standing::undecided)
      figure.why = change.is_assumed ? "a single value, 5 % of variation are assumed"
                                     : "steps vary too much to tell";
    if (figure.standing == Standing::undecided && options_.undecided)
      figure.standing = *options_.undecided;
    return figure;
  }

  static Standing standing(const StepChange& change, const CheckedFigure& figure, const Limit* fail,
                           const Limit* warn) {
    const auto judged = [&](const Limit* limit) {
      return limit == nullptr || limit->is_off
                 ? Standing::passed
                 : judge(change, figure.less_is_worse, *figure.before, *limit);
    };
    const Standing found = judged(fail);
    if (found != Standing::passed) return found;
    return judged(warn) == Standing::failed ? Standing::warned : Standing::passed;
  }

  const CheckBaseline& baseline_;
  const JobSummary& now_;
  const CheckOptions& options_;
};

/// Names of the transforms of a scenario, as JSON text.
std::string used_in(const std::string& scenario) {
  std::string names;
  const nlohmann::json json = nlohmann::json::parse(scenario, nullptr, false);
  if (!json.is_object() || !json.contains("transforms") || !json["transforms"].is_array())
    return "no known scenario";
  for (const nlohmann::json& step : json["transforms"]) {
    const bool is_named = step.is_object() && step.contains("use") && step["use"].is_string();
    names += (names.empty() ? "" : ", ") + (is_named ? step["use"].get<std::string>() : "unknown");
  }
  return names.empty() ? "the job as recorded" : names;
}

void refuse_other_scenario(const CheckBaseline& baseline, const Scenario& scenario) {
  const std::string asked =
      asked_of(scenario).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (asked == baseline.scenario) return;
  const std::string was = used_in(baseline.scenario), is = used_in(asked);
  throw Error("the baseline must be of the same scenario; it is of " + was + ", asked is " + is +
              (was == is ? " with other settings" : "") +
              "; give each scenario a baseline of its own (--bless)");
}

void note_differences(const CheckBaseline& baseline, const JobSummary& now, bool structure_only,
                      Notes& notes) {
  const std::string& was = baseline.summary.device;
  if (!structure_only && !was.empty() && !now.device.empty() && was != now.device)
    notes.add(Severity::warning,
              "the baseline was recorded on another device; --structure-only compares what does "
              "not depend on it",
              was + ", now " + now.device);
  if (baseline.summary.rank != now.rank)
    notes.add(Severity::warning, "the rank of the baseline is not in the trace",
              "rank " + std::to_string(baseline.summary.rank) + ", compared with rank " +
                  std::to_string(now.rank));
}

}  // namespace

CheckBaseline bless(const std::string& trace_path, const Scenario& scenario,
                    const CheckOptions& options, const CheckBaseline* old) {
  const std::vector<Trace> traces = import_all(trace_path, options.reading);
  check_ranks(scenario, traces);
  Donors(options.reading).teach(scenario);
  const JudgedJob job = judged_job(traces, trace_path, scenario, std::nullopt);
  const CallSites sites(*job.rank.trace, job.rank.inference.graph);
  const Observation seen = observation_of(job, sites, std::nullopt);
  CheckBaseline baseline = baseline_from(seen, scenario);
  refuse_unknown(options, baseline.summary);
  set_limits(options, old, baseline);
  return baseline;
}

CheckReport check(const std::string& trace_path, const Scenario& scenario,
                  const CheckBaseline& baseline, const CheckOptions& options) {
  refuse_other_scenario(baseline, scenario);
  const std::vector<Trace> traces = import_all(trace_path, options.reading);
  check_ranks(scenario, traces);
  Donors(options.reading).teach(scenario);
  JudgedJob job = judged_job(traces, trace_path, scenario, baseline.summary.rank);
  const CallSites sites(*job.rank.trace, job.rank.inference.graph);
  const Observation seen = observation_of(job, sites, baseline.summary.detail);
  CheckBaseline now = baseline_from(seen, scenario);
  // Baselines keep only the most of it.
  for (std::size_t i = 0; i < now.summary.groups.size(); ++i)
    now.summary.groups[i].least = seen.summary.groups[i].least;
  if (now.summary.figures.contains("slower_places"))
    now.summary.figures["slower_places"] = {slower_places(baseline.summary, now.summary)};
  refuse_unknown(options, now.summary);
  CheckReport report;
  report.inputs = input_files(trace_path, traces);
  report.scenario = scenario_words(scenario);
  report.structure_only = options.structure_only;
  if (!is_snapshot(*job.rank.trace))
    report.steps = step_times(job.rank.graph(), job.rank.timeline());
  report.same_structure = now.fingerprint == baseline.fingerprint;
  report.figures = Judge(baseline, now.summary, options).figures();
  if (!is_snapshot(*job.rank.trace))
    report.trust = trust_in_job(job.rank.inference, job.rank.trace->notes, job.rank.is_edited);
  leave_undecided(options, report);
  for (const CheckedFigure& figure : report.figures)
    report.standing = std::max(report.standing, figure.standing);
  report.causes = causes_of({.job = seen.job,
                             .grouping = seen.grouping,
                             .before = baseline.summary,
                             .after = now.summary,
                             .figures = report.figures});
  for (CheckCause& cause : report.causes) {
    cause.file = file_in_sources(cause.file, options.source_root);
    if (options.structure_only) cause.local = 0ns, cause.effect.reset();
  }
  report.notes = std::move(job.notes);
  note_differences(baseline, now.summary, options.structure_only, report.notes);
  return report;
}

}  // namespace foretrace
