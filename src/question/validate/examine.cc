#include "foretrace/question/examine.h"

#include <fmt/core.h>
#include <optional>

#include "foretrace/error.h"
#include "job/chosen_rank.h"
#include "job/job.h"

namespace foretrace {

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
