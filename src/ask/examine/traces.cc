#include "ask/job/job.h"
#include "ask/job/rank_facts.h"
#include "foretrace/ask/examine.h"

namespace foretrace {

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
      examined.steps = step_times(rank.inference.graph, rank.inference.recorded);
    if (job.is_joined()) examined.among = rank_facts(job, i);
    examined.trace = std::move(*rank.trace);
  }
  all.front().trace.notes = job.ranks.front().import_notes;
  note_ranks(job, all.front().trace.notes);
  return all;
}

}  // namespace foretrace
