#include "ask/job/job.h"

#include <algorithm>
#include <map>
#include <set>
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

std::vector<const Inference*> inferences_of(const Job& job) {
  std::vector<const Inference*> all;
  for (const Rank& rank : job.ranks) all.push_back(&rank.inference);
  return all;
}

/// "rank 1 (run/rank1.json)"
std::vector<std::string> labels_of(const Job& job) {
  std::vector<std::string> labels;
  for (const Rank& rank : job.ranks) {
    std::string label = "rank " + std::to_string(rank.number);
    if (!rank.files.empty()) label += " (" + rank.files.front().path + ")";
    labels.push_back(std::move(label));
  }
  return labels;
}

/// Time that other ranks explain is open no more where they are there.
void close_waits(Job& job) {
  std::vector<std::set<TaskId>> met(job.ranks.size());
  for (const Meeting& meeting : job.join.meetings) {
    for (const MeetingMember& member : meeting.members) met[member.rank].insert(member.task);
  }
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    Inference& rank = job.ranks[i].inference;
    Nanoseconds closed{0};
    std::erase_if(rank.open, [&](const OpenTime& open) {
      if (!open.of_peers || !met[i].contains(open.task)) return false;
      closed += open.time;
      return true;
    });
    rank.graph.unexplained().peers -= closed;
    rank.notes.merge(job.join.notes);
  }
}

/// Repeats the recorded ranks until there are `size`: their groups are those of other ranks, as many
/// places further on.
void repeat(Job& job, std::int32_t size) {
  const std::size_t recorded = job.ranks.size(), wanted = static_cast<std::size_t>(size);
  const bool is_whole = job.ranks.back().number == static_cast<std::int32_t>(recorded) - 1;
  if (!is_whole || wanted < recorded || wanted % recorded != 0)
    throw Error("ranks: must be a multiple of the " + std::to_string(recorded) +
                " recorded ranks, which are numbered from 0, got " + std::to_string(size));
  const std::vector<Meeting> once = job.join.meetings;
  for (std::size_t first = recorded; first < wanted; first += recorded) {
    for (std::uint32_t i = 0; i < recorded; ++i) {
      job.world.push_back({static_cast<std::int32_t>(first + i), i, false});
      if (!job.join.clocks.empty()) job.join.clocks.push_back(job.join.clocks[i]);
    }
    for (Meeting meeting : once) {
      for (MeetingMember& member : meeting.members)
        member.rank += static_cast<std::uint32_t>(first);
      job.join.meetings.push_back(std::move(meeting));
    }
  }
}

void list_world(Job& job) {
  for (std::uint32_t i = 0; i < job.ranks.size(); ++i)
    job.world.push_back({job.ranks[i].number, i, true});
}

void join(Job& job, std::int32_t world_size = 0) {
  if (job.has_snapshots()) return;
  if (job.ranks.size() > 1) {
    job.join = join_ranks(inferences_of(job), labels_of(job));
    close_waits(job);
  }
  if (world_size > 0) repeat(job, world_size);
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
  Job job{.path = path, .ranks = {}, .world = {}, .join = {}};
  for (const Trace& trace : traces) job.ranks.push_back(described(trace));
  on_all_cores(traces.size(), [&](std::size_t i) {
    within(job.place(job.ranks[i]),
           [&] { infer_rank(std::move(traces[i]), options, job.ranks[i]); });
  });
  list_world(job);
  if (options.joins_ranks) within(path, [&] { join(job, options.world_size); });
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
  list_world(job);
  join(job);
  return job;
}

std::vector<const Graph*> graphs_of(const Job& job) {
  std::vector<const Graph*> graphs;
  for (const WorldRank& rank : job.world)
    graphs.push_back(&job.ranks[rank.recorded].inference.graph);
  return graphs;
}

JointReplay replay(const Job& job, std::span<const Graph* const> graphs,
                   const JointOptions& options) {
  CHECK(graphs.size() == job.world.size());
  if (!job.is_joined()) {
    JointReplay replay;
    std::map<const Graph*, std::uint32_t> first;
    for (std::uint32_t i = 0; i < graphs.size(); ++i)
      replay.alike.push_back(options.folds ? first.try_emplace(graphs[i], i).first->second : i);
    replay.timelines.resize(graphs.size());
    on_all_cores(graphs.size(), [&](std::size_t i) {
      if (replay.alike[i] != i) return;
      replay.timelines[i] =
          simulate(*graphs[i], {.reasons = options.reasons, .memory = options.memory});
    });
    return replay;
  }
  Nanoseconds first = job.join.clocks.front().offset;
  for (const RankClock& clock : job.join.clocks) first = std::min(first, clock.offset);
  std::vector<JoinedGraph> ranks;
  for (std::size_t i = 0; i < graphs.size(); ++i)
    ranks.push_back({graphs[i], job.join.clocks[i].offset - first});
  return simulate_jointly(ranks, job.join.meetings, options);
}

void keep_waits(const Job& job, std::size_t rank, const Timeline& replayed, Graph& graph) {
  for (const Meeting& meeting : job.join.meetings) {
    for (const MeetingMember& member : meeting.members) {
      if (member.rank != rank || graph.removed(member.task)) continue;
      const std::uint32_t task = index(member.task);
      graph.task(member.task).duration = replayed.finish[task] - replayed.start[task];
    }
  }
}

Inference clone(const Inference& inference) {
  return {.graph = inference.graph.clone(),
          .recorded = inference.recorded,
          .notes = inference.notes,
          .assumptions = inference.assumptions,
          .open = inference.open,
          .collectives = inference.collectives,
          .rank = inference.rank};
}

}  // namespace foretrace
