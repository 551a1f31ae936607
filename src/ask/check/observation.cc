#include "ask/check/observation.h"

#include <algorithm>
#include <fmt/core.h>

#include "ask/check/job/figures.h"
#include "ask/job/apply.h"
#include "ask/job/chosen_rank.h"
#include "ask/job/memory_peaks.h"
#include "ask/job/rank_facts.h"
#include "ask/predict/baseline.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// Applies a scenario to the recorded ranks together, because they wait for each other, and returns
/// their edited graphs; none if the scenario edits nothing.
std::vector<Graph> edited_graphs(const Job& job, const Scenario& scenario, Donors& donors) {
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

}  // namespace

CheckedJob checked_job(const Job& job, const Scenario& scenario, Donors& donors,
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

}  // namespace foretrace
