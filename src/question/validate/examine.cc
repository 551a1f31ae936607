#include "foretrace/question/examine.h"

#include <fmt/core.h>
#include <optional>

#include "analysis/doubt/interval.h"
#include "analysis/doubt/resample.h"
#include "base/statistics.h"
#include "foretrace/error.h"
#include "foretrace/question/pairs.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "job/job_graph.h"

namespace foretrace {
namespace {

/// Times of the steady steps, except one.
std::vector<Nanoseconds> other_step_times(const StepTimes& measured, std::size_t left_out) {
  std::vector<Nanoseconds> times;
  for (std::size_t i = measured.first; i < measured.each.size(); ++i) {
    if (i != left_out) times.push_back(measured.each[i]);
  }
  return times;
}

}  // namespace

// Checks that intervals are as reliable as they claim: each recorded step in turn is treated as
// unknown, so that neither its work nor its time counts, and the interval of all others should
// contain its time.
LeftOutSteps left_out_steps(const Inference& inference) {
  LeftOutSteps found;
  const StepTimes measured = step_times(inference.graph, inference.recorded);
  if (measured.period > 1) return found;  // Other steps say nothing about a step of another kind.
  const StepVariation variation(inference);
  if (variation.donors().size() < 3 || !all_lanes_fifo(inference.graph)) return found;
  for (const std::size_t step : variation.donors()) {
    const std::vector<Nanoseconds> rest = other_step_times(measured, step);
    if (step >= measured.each.size() || rest.size() < 2) continue;
    const Resampled drawn =
        resample(variation, inference.graph, inference.graph, {.seed = 1, .leave_out = {step}});
    const Nanoseconds point = median(rest);
    const Interval interval = interval_of({.point = point,
                                           .times = recentered(drawn, point),
                                           .recorded_steps = drawn.donors,
                                           .resamples = drawn.resamples});
    ++found.steps;
    if (interval.lower <= measured.each[step] && measured.each[step] <= interval.upper)
      ++found.inside;
  }
  return found;
}

std::vector<ValidatedRank> validate_trace(const std::string& path, const std::string& against,
                                          const ImportOptions& reading) {
  std::optional<Inference> other;
  if (!against.empty()) {
    const Trace trace = import_trace(against, reading);
    other = within(against, [&] { return infer(trace); });
  }
  std::vector<ValidatedRank> rows;
  const JobRanks job = read_job(path, {.reading = reading});
  for (const Rank& rank : job.ranks) {
    const Inference& inference = rank.inference;
    const std::string name =
        job.ranks.size() == 1 ? path : fmt::format("{}, rank {}", path, rank.number);
    within(job.place(rank), [&] {
      rows.push_back(
          {name,
           other ? validate_against(inference, *other) : validate(inference, !rank.is_snapshot),
           other ? LeftOutSteps{} : left_out_steps(inference), against});
    });
  }
  return rows;
}

namespace {

void add_step(const Inference& rank, ExaminedTrace& examined) {
  examined.steps = step_times(rank.graph, rank.recorded);
  examined.breakdown = breakdown(rank.graph, rank.recorded);
  examined.communication = communication_time(rank.graph, rank.recorded);
}

}  // namespace

std::vector<ExaminedTrace> examine_traces(const std::string& path, const ImportOptions& reading) {
  JobRanks job = read_job(path, {.reading = reading,
                                 .keep_traces = true,
                                 .memory = false,
                                 .keep_refused = true,
                                 .joining = Joining::if_one_job});
  std::vector<ExaminedTrace> all;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    Rank& rank = job.ranks[i];
    ExaminedTrace& examined = all.emplace_back();
    if (rank.refused.empty() && !rank.is_snapshot && rank.trace->has_times)
      add_step(rank.inference, examined);
    if (job.is_joined()) examined.among = rank_facts(job, i);
    examined.trace = std::move(*rank.trace);
  }
  all.front().trace.notes = job.ranks.front().import_notes;
  note_ranks(job, all.front().trace.notes);
  return all;
}

}  // namespace foretrace
