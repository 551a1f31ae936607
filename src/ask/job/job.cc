#include "ask/job/job.h"

#include <algorithm>
#include <utility>

#include "base/threads.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

std::map<std::int32_t, Bytes> recorded_reserved(const Trace& trace) {
  std::map<std::int32_t, Bytes> most;
  for (const MemoryRecord& record : trace.memory) {
    if (record.total_reserved < 0) continue;
    Bytes& level = most[record.device];
    level = std::max(level, Bytes{record.total_reserved});
  }
  return most;
}

Rank described(const Trace& trace) {
  return {.number = trace.rank,
          .inference = {},
          .is_snapshot = is_snapshot(trace),
          .import_notes = trace.notes,
          .recorded_reserved = recorded_reserved(trace),
          .files = trace.files,
          .trace = {},
          .refused = {}};
}

void infer_rank(Trace trace, const JobOptions& options, Rank& rank) {
  try {
    rank.inference = infer(trace);
  } catch (const TraceError& error) {
    if (!options.keep_refused) throw;
    rank.refused = error.what();
  }
  if (options.keep_traces) rank.trace = std::move(trace);
}

}  // namespace

std::string Job::place(const Rank& rank) const {
  return ranks.size() == 1 ? path : path + ": rank " + std::to_string(rank.number);
}

std::vector<InputFile> Job::inputs() const {
  std::map<std::string, std::string> formats;  // By path.
  for (const Rank& rank : ranks) {
    for (const SourceFile& file : rank.files) formats.try_emplace(file.path, file.format);
  }
  std::vector<InputFile> inputs;
  for (const auto& [file, format] : formats) inputs.push_back({file, format, {}});
  on_all_cores(inputs.size(),
               [&](std::size_t i) { inputs[i].sha256 = sha256_of_file(inputs[i].path); });
  return inputs;
}

bool Job::has_snapshots() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.is_snapshot; });
}

Job read_job(const std::string& path, const JobOptions& options) {
  std::vector<Trace> traces = import_all(path, options.reading);
  Job job{.path = path, .ranks = {}};
  for (const Trace& trace : traces) job.ranks.push_back(described(trace));
  on_all_cores(traces.size(), [&](std::size_t i) {
    within(job.place(job.ranks[i]),
           [&] { infer_rank(std::move(traces[i]), options, job.ranks[i]); });
  });
  return job;
}

Job job_of(std::vector<Inference> ranks) {
  CHECK(!ranks.empty());
  Job job;
  for (Inference& inference : ranks) {
    Rank rank;
    const Graph& graph = inference.graph;
    if (graph.lane_count() > 0) rank.number = graph.lane(LaneId{0}).rank;
    rank.inference = std::move(inference);
    job.ranks.push_back(std::move(rank));
  }
  return job;
}

Inference clone(const Inference& inference) {
  return {.graph = inference.graph.clone(),
          .recorded = inference.recorded,
          .notes = inference.notes,
          .assumptions = inference.assumptions,
          .open = inference.open};
}

}  // namespace foretrace
