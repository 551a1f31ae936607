#include "ask/check/observation.h"

#include <algorithm>
#include <cctype>

#include "ask/check/job/changes.h"
#include "ask/job/apply.h"
#include "ask/job/chosen_rank.h"
#include "ask/job/memory_peaks.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

JudgedRank judged_rank(const Rank& source, const Scenario& scenario, Donors& donors) {
  JudgedRank rank;
  rank.source = &source;
  rank.is_edited = edits(scenario);
  if (rank.is_edited) {
    rank.edited = source.inference.graph.clone();
    apply(scenario, rank.edited, &donors);
  }
  rank.replayed = simulate(rank.graph(), {.reasons = true});
  rank.peaks = memory_peaks(rank.graph(), rank.replayed, allocator_of(scenario));
  if (rank.step_time() <= 0ns && !source.is_snapshot)
    throw TraceError("nothing to check: no step of the trace takes any time");
  return rank;
}

std::vector<std::int64_t> recorded_steps(const JudgedRank& rank) {
  const StepTimes times = step_times(rank.graph(), rank.timeline());
  std::vector<std::int64_t> steps;
  for (const Nanoseconds time : times.counted) steps.push_back(time.count());
  if (steps.empty()) steps.push_back(times.step_time.count());
  return steps;
}

}  // namespace

JudgedJob judged_job(const Job& job, const Scenario& scenario, Donors& donors,
                     std::optional<std::int32_t> wanted) {
  JudgedJob judged;
  Slowest slowest;
  Fullest fullest;
  // Several runs of one rank may lie in a folder; then it is the slowest of them.
  RankWithMost<std::pair<bool, Nanoseconds>> shown;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Rank& source = job.ranks[i];
    JudgedRank rank =
        within(job.place(source), [&] { return judged_rank(source, scenario, donors); });
    const Nanoseconds step = rank.step_time();
    if (fullest.consider(i, need_of(rank.peaks))) judged.fullest = rank.peaks;
    if (slowest.consider(i, step)) judged.slowest_steps = recorded_steps(rank);
    if (shown.consider(i, {wanted == source.number, step})) judged.rank = std::move(rank);
  }
  const std::int32_t slowest_rank = job.ranks[slowest.rank()].number;
  const std::int32_t shown_rank = job.ranks[shown.rank()].number;
  if (slowest_rank == shown_rank) judged.slowest_steps.reset();
  judged.notes.merge(judged.rank.source->import_notes);
  judged.notes.merge(judged.rank.inference().notes);
  if (job.ranks.size() > 1)
    judged.notes.add(Severity::info,
                     "the step time is that of the slowest rank, " + std::to_string(slowest_rank) +
                         "; everything else is that of rank " + std::to_string(shown_rank));
  return judged;
}

namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::int64_t slower_places(const JobSummary& before, const JobSummary& now) {
  const std::vector<WorkChange> changes =
      marked_changes(before, work_changes(before, now.groups).changes);
  return std::count_if(changes.begin(), changes.end(),
                       [](const WorkChange& change) { return change.stands_out; });
}

void add_peaks(const JudgedJob& job, JobSummary& summary) {
  const auto add = [&](const char* name, const std::optional<Bytes>& peak) {
    if (peak && *peak > Bytes{}) summary.figures[name] = {peak->count};
  };
  add("peak_allocated", greatest_allocated(job.fullest));
  add("peak_reserved", greatest_reserved(job.fullest));
}

}  // namespace

void compare_kernels(const JobSummary& before, JobSummary& now) {
  now.figures["slower_places"] = {slower_places(before, now)};
  now.figures["slower_kernels"] = {std::ssize(slower_kernels(before.kernels, now.kernels))};
  std::vector<std::int64_t> pace = kernel_pace(before.kernels, now.kernels);
  now.figures.erase("kernel_pace");
  if (!pace.empty()) now.figures["kernel_pace"] = std::move(pace);
}

Observation observation_of(const JudgedJob& job, const CallSites& sites,
                           std::optional<int> detail) {
  const JudgedRank& rank = job.rank;
  Observation seen{.job = {.trace = rank.trace(),
                           .graph = rank.graph(),
                           .timeline = rank.timeline(),
                           .replayed = rank.replayed,
                           .sites = sites,
                           .recorded_tasks = rank.inference().graph.task_count(),
                           .is_edited = rank.is_edited},
                   .grouping = {},
                   .kernels = {},
                   .summary = {}};
  seen.grouping = group_work(seen.job, detail);
  JobSummary& summary = seen.summary;
  summary.detail = seen.grouping.detail;
  summary.rank = rank.source->number;
  summary.groups = seen.grouping.groups;
  if (!rank.graph().device_names().empty())
    summary.device = lower_case(rank.graph().device_names().front());
  if (!rank.source->is_snapshot) {
    summary.figures = figures_of(seen.job);
    seen.kernels = kernels_of(seen.job);
    summary.kernels = seen.kernels.kernels;
    compare_kernels(summary, summary);
  }
  if (job.slowest_steps) summary.figures["step_time"] = *job.slowest_steps;
  MemoryOfJob memory = memory_of(seen.job);
  summary.memory = std::move(memory.groups);
  add_peaks(job, summary);
  if (memory.growth) summary.figures["memory_growth"] = {memory.growth->count};
  return seen;
}

}  // namespace foretrace
