#pragma once

// A job: the ranks that ran together, each with the graph of its own recording, and the files that
// they were read from.
//
//     files --import--> traces --infer--> ranks --join--> collectives
//
// Each rank keeps a graph of its own, which transforms edit. The collectives and messages between
// ranks are listed beside the graphs: replay() makes each member wait for the last one.
// chosen_rank.h picks the rank for which a question is answered.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/notes.h"
#include "foretrace/trace.h"
#include "infer/ranks/join.h"
#include "simulate/joint_replay.h"

namespace foretrace {

struct Rank {
  std::int32_t number = 0;
  Inference inference;
  /// Memory snapshots have no times; times in their graph are positions in a history.
  bool is_snapshot = false;
  Notes import_notes;  ///< Oddities that the importer found.
  /// Greatest reserved memory that the recorded allocator reports for each device.
  std::map<std::int32_t, Bytes> recorded_reserved;
  std::vector<SourceFile> files;
  std::optional<Trace> trace;  ///< Only with RankReading::keep_traces.
  std::string refused;  ///< The reason why there is no graph; only with RankReading::keep_refused.
};

/// A rank of the whole job: recorded, or assumed to be like a recorded one.
struct WorldRank {
  std::int32_t number = 0;
  std::uint32_t recorded = 0;  ///< Index into JobRanks::ranks.
  bool is_recorded = true;
};

struct JobRanks {
  std::string path;         ///< As given.
  std::vector<Rank> ranks;  ///< Recorded ranks, sorted by number; at least one.
  /// The ranks that are replayed: the recorded ones, then further ones, sorted by number, if
  /// RankReading::world_size asks for them.
  std::vector<WorldRank> world;
  /// Collectives between the ranks of `world`. Empty for a single rank, and if not asked for.
  RankJoin join;
  std::string mismatch;  ///< The reason why the recordings are not of one job; empty if they are.

  /// Prefix for errors of a rank: "runs/7: rank 1", or just the path if it is the only rank.
  std::string place(const Rank& rank) const;
  /// The files that the ranks were read from, each once, sorted by path. Reads them again for their
  /// checksums, on all cores. Throws TraceError.
  std::vector<InputFile> inputs() const;
  bool has_snapshots() const;
  /// Whether ranks wait for each other.
  bool is_joined() const { return !join.collectives.empty(); }
};

/// Whether to join the ranks, so that they wait for each other.
enum class Joining : std::uint8_t {
  none,
  if_one_job,  ///< Joins ranks of one job; otherwise JobRanks::mismatch gives the reason.
  required,    ///< Throws TraceError if the recordings are not of one job.
};

struct RankReading {
  ImportOptions reading = {};
  /// Ranks keep their traces. Otherwise each trace is freed as soon as its graph is made.
  bool keep_traces = false;
  /// Finds what uses memory; see InferOptions.
  bool memory = true;
  /// Ranks that infer() refuses are part of the job. Otherwise they cause a TraceError.
  bool keep_refused = false;
  Joining joining = Joining::none;
  /// One rank will be examined alone: its waits for others are open time.
  bool keeps_waits_open = false;
  /// Number of ranks of the whole job; 0 means as many as were recorded. Recorded ranks stand for
  /// the others, by their places in the groups; see join_ranks().
  std::int32_t world_size = 0;
};

/// Imports rank after rank, and infers them on all cores. Throws TraceError.
JobRanks read_job(const std::string& path, const RankReading& options = {});

/// The rank of a job on one GPU. Throws Error, with `hint` at its end, if there are several ranks.
const Rank& only_rank(const JobRanks& job, const std::string& hint = "");

/// The waits of a joined rank for others, as open time, unless they are open time already.
std::vector<OpenTime> open_waits(const JobRanks& job, std::size_t rank);

/// Makes a job of inferred ranks, without files or traces. Throws TraceError if they are not of one
/// job.
JobRanks job_of(std::vector<Inference> ranks);

/// Replays one graph for each rank of the world, together if ranks meet. Ranks may share a graph,
/// which is their own or an edited clone of it. Throws as simulate() does.
JointReplay replay(const JobRanks& job, std::span<const Graph* const> graphs,
                   const JointOptions& options = {});
/// The same graphs, each with the time at which its rank begins; 0 if ranks do not meet.
std::vector<RankGraph> rank_graphs(const JobRanks& job, std::span<const Graph* const> graphs);
/// The recorded graphs, by rank of the world.
std::vector<const Graph*> graphs_of(const JobRanks& job);

/// Makes each task of a collective last as long as in the replay, including its wait for other
/// ranks, so that a replay of the rank alone has the same times. `rank` is an index into the world.
void keep_waits(const JobRanks& job, std::size_t rank, const Timeline& replayed, Graph& graph);

Inference clone(const Inference& inference);

}  // namespace foretrace
