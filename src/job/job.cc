#include "job/job.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/threads.h"
#include "base/wording.h"
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

Rank rank_without_graph(const Trace& trace) {
  return {.number = trace.rank,
          .inference = {},
          .is_snapshot = is_snapshot(trace),
          .import_notes = trace.notes,
          .recorded_reserved = recorded_reserved(trace),
          .files = trace.files,
          .trace = {},
          .refused = {}};
}

Rank infer_rank(Trace trace, const RankReading& options) {
  Rank rank = rank_without_graph(trace);
  try {
    rank.inference = infer(trace, {.memory = options.memory});
  } catch (const TraceError& error) {
    rank.refused = error.what();
  }
  if (options.keep_traces) rank.trace = std::move(trace);
  return rank;
}

std::vector<const Inference*> inferences_of(const JobRanks& job) {
  std::vector<const Inference*> all;
  for (const Rank& rank : job.ranks) all.push_back(&rank.inference);
  return all;
}

/// "rank 1 (run/rank1.json)"
std::vector<std::string> labels_of(const JobRanks& job) {
  std::vector<std::string> labels;
  for (const Rank& rank : job.ranks) {
    std::string label = fmt::format("rank {}", rank.number);
    if (!rank.files.empty())
      label +=
          fmt::format(" ({})", std::filesystem::path(rank.files.front().path).filename().string());
    labels.push_back(std::move(label));
  }
  return labels;
}

/// For each rank, how long each of its collectives that others recorded too waited for these.
std::vector<std::map<TaskId, Nanoseconds>> waits_of(const JobRanks& job) {
  std::vector<std::map<TaskId, Nanoseconds>> waits(job.ranks.size());
  for (const MatchedCollective& collective : job.join.collectives) {
    for (const CollectiveMember& member : collective.members) {
      if (member.rank < waits.size()) waits[member.rank].emplace(member.task, member.skew);
    }
  }
  return waits;
}

/// Replaces the waits for other ranks that infer() guessed. They are open time if `are_open`, for a
/// rank that is examined alone; they are explained if the other ranks are replayed with it.
void set_waits(JobRanks& job, bool are_open) {
  const std::vector<std::map<TaskId, Nanoseconds>> waits = waits_of(job);
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    Inference& rank = job.ranks[i].inference;
    std::erase_if(rank.open, [&](const OpenTime& open) {
      return open.of_peers && waits[i].contains(open.task);
    });
    for (const auto& [task, time] : waits[i]) {
      if (are_open && time > 0ns)
        rank.open.push_back({.task = task, .time = time, .of_peers = true});
    }
    Nanoseconds& peers = rank.graph.unexplained().peers;
    peers = 0ns;
    for (const OpenTime& open : rank.open) peers += open.of_peers ? open.time : 0ns;
  }
}

/// Replaces the assumption that infer() makes about a rank alone.
void set_assumptions(JobRanks& job) {
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const CollectiveTotals& totals = job.join.ranks[i];
    if (totals.matched == 0) continue;
    std::vector<std::string>& all = job.ranks[i].inference.assumptions;
    std::erase(all, kCollectivesKeepTime);
    all.emplace_back(
        "A collective begins when the last of its ranks has entered, and transfers for as long as "
        "recorded.");
    if (totals.unmatched > 0)
      all.push_back(fmt::format(
          "{} that no other rank recorded {} recorded time, including the time spent waiting.",
          counted(totals.unmatched, "collective"),
          totals.unmatched == 1 ? "keeps its" : "keep their"));
  }
}

void add_recorded_ranks(JobRanks& job) {
  for (std::uint32_t i = 0; i < job.ranks.size(); ++i)
    job.world.push_back({job.ranks[i].number, i, true});
}

/// Adds the ranks that were not recorded; recorded ones stand for them.
void add_assumed_ranks(JobRanks& job) {
  for (std::size_t i = job.ranks.size(); i < job.join.world.size(); ++i) {
    const RankJoin::WorldRank& rank = job.join.world[i];
    job.world.push_back({rank.number, rank.recorded, false});
    job.join.clocks.push_back(job.join.clocks[rank.recorded]);
  }
}

/// Whether waits between ranks form a cycle. Recorded waits go forward in time, so that happens
/// only if clocks are off.
bool has_cycle(const JobRanks& job) {
  if (job.join.crossed == 0) return false;
  try {
    replay(job, graphs_of(job), {.memory = false});
    return false;
  } catch (const Error&) {
    return true;
  }
}

void join(JobRanks& job, const RankReading& options) {
  if (job.has_snapshots()) return;
  const bool is_joined = job.ranks.size() > 1;
  if (is_joined || options.world_size > 0) {
    job.join = join_ranks(inferences_of(job), labels_of(job), options.world_size);
    add_assumed_ranks(job);
  }
  if (is_joined) {
    if (has_cycle(job)) {
      job.join.collectives.clear();
      for (CollectiveTotals& rank : job.join.ranks) rank = {};
      job.join.notes.add(Severity::warning,
                         "the collectives of the ranks wait for each other in a cycle, as their "
                         "clocks are too far apart; each rank is replayed alone");
    }
    for (Rank& rank : job.ranks) rank.inference.notes.merge(job.join.notes);
    set_waits(job, options.keeps_waits_open);
    if (!options.keeps_waits_open) set_assumptions(job);
  }
}

void try_to_join(JobRanks& job, const RankReading& options) {
  const auto is_refused = [](const Rank& rank) { return !rank.refused.empty(); };
  if (std::any_of(job.ranks.begin(), job.ranks.end(), is_refused)) return;
  try {
    join(job, options);
  } catch (const TraceError& error) {
    job.mismatch = error.what();
  }
}

}  // namespace

std::string JobRanks::place(const Rank& rank) const {
  return ranks.size() == 1 ? path : fmt::format("{}: rank {}", path, rank.number);
}

std::vector<InputFile> JobRanks::inputs() const {
  std::map<std::string, std::string> formats;  // Keyed by path.
  for (const Rank& rank : ranks) {
    for (const SourceFile& file : rank.files) formats.try_emplace(file.path, file.format);
  }
  std::vector<InputFile> inputs;
  for (const auto& [file, format] : formats) inputs.push_back({file, format, {}});
  on_all_cores(inputs.size(),
               [&](std::size_t i) { inputs[i].sha256 = sha256_of_file(inputs[i].path); });
  return inputs;
}

bool JobRanks::has_snapshots() const {
  return std::any_of(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.is_snapshot; });
}

JobRanks read_job(const std::string& path, const RankReading& options) {
  std::map<std::size_t, Rank> ranks;
  std::mutex mutex;
  const ImportedFolder folder =
      import_each(path, options.reading, [&](std::size_t number, Trace trace) {
        Rank rank = infer_rank(std::move(trace), options);
        const std::lock_guard lock(mutex);
        ranks.emplace(number, std::move(rank));
      });
  JobRanks job{.path = path, .ranks = {}, .world = {}, .join = {}, .mismatch = {}};
  for (const std::size_t number : folder.order) job.ranks.push_back(std::move(ranks.at(number)));
  job.ranks.front().import_notes.merge(folder.notes);
  for (const Rank& rank : job.ranks) {
    if (!rank.refused.empty() && !options.keep_refused)
      throw TraceError(fmt::format("{}: {}", job.place(rank), rank.refused));
  }
  add_recorded_ranks(job);
  if (options.joining == Joining::required) within(path, [&] { join(job, options); });
  if (options.joining == Joining::if_one_job) try_to_join(job, options);
  return job;
}

const Rank& only_rank(const JobRanks& job, const std::string& hint) {
  if (job.ranks.size() > 1)
    throw Error(fmt::format("{}: must be the trace of a job on one GPU, got {} ranks{}", job.path,
                            job.ranks.size(), hint));
  return job.ranks.front();
}

JobRanks job_of(std::vector<Inference> ranks) {
  CHECK(!ranks.empty());
  JobRanks job;
  for (Inference& inference : ranks) {
    Rank rank;
    const Graph& graph = inference.graph;
    if (graph.lane_count() > 0) rank.number = graph.lane(LaneId{0}).rank;
    rank.inference = std::move(inference);
    job.ranks.push_back(std::move(rank));
  }
  add_recorded_ranks(job);
  const auto meets = [](const Rank& rank) { return !rank.inference.graph.collectives().empty(); };
  if (std::any_of(job.ranks.begin(), job.ranks.end(), meets)) join(job, {});
  return job;
}

std::vector<OpenTime> open_waits(const JobRanks& job, std::size_t rank) {
  std::set<TaskId> known;
  for (const OpenTime& open : job.ranks[rank].inference.open)
    if (open.of_peers) known.insert(open.task);
  std::vector<OpenTime> waits;
  for (const MatchedCollective& collective : job.join.collectives) {
    for (const CollectiveMember& member : collective.members) {
      if (member.rank == rank && member.skew > 0ns && !known.contains(member.task))
        waits.push_back({.task = member.task, .time = member.skew, .of_peers = true});
    }
  }
  return waits;
}

std::vector<const Graph*> graphs_of(const JobRanks& job) {
  std::vector<const Graph*> graphs;
  for (const WorldRank& rank : job.world)
    graphs.push_back(&job.ranks[rank.recorded].inference.graph);
  return graphs;
}

JointReplay replay(const JobRanks& job, std::span<const Graph* const> graphs,
                   const JointOptions& options) {
  CHECK(graphs.size() == job.world.size());
  if (!job.is_joined()) {
    JointReplay replay;
    std::map<const Graph*, std::uint32_t> first;
    for (std::uint32_t i = 0; i < graphs.size(); ++i)
      replay.first_alike.push_back(options.folds ? first.try_emplace(graphs[i], i).first->second
                                                 : i);
    replay.timelines.resize(graphs.size());
    on_all_cores(graphs.size(), [&](std::size_t i) {
      if (replay.first_alike[i] != i) return;
      replay.timelines[i] =
          simulate(*graphs[i], {.reasons = options.reasons, .memory = options.memory});
    });
    return replay;
  }
  return simulate_jointly(rank_graphs(job, graphs), job.join.collectives, options);
}

std::vector<RankGraph> rank_graphs(const JobRanks& job, std::span<const Graph* const> graphs) {
  std::vector<RankGraph> ranks;
  for (const Graph* graph : graphs) ranks.push_back({graph});
  if (!job.is_joined()) return ranks;
  Nanoseconds first = job.join.clocks.front().offset;
  for (const RankClock& clock : job.join.clocks) first = std::min(first, clock.offset);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    ranks[i].begins = job.join.clocks[i].offset - first;
  return ranks;
}

void keep_waits(const JobRanks& job, std::size_t rank, const Timeline& replayed, Graph& graph) {
  for (const MatchedCollective& collective : job.join.collectives) {
    for (const CollectiveMember& member : collective.members) {
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
          .rank = inference.rank};
}

}  // namespace foretrace
