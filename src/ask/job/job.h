#pragma once

// A job: the ranks that ran together, each with the graph of its own recording, and the files that
// they were read from.
//
//     files --import--> traces --infer--> ranks --join--> meetings
//
// Each rank keeps a graph of its own, which transforms edit. Where ranks meet, in collectives and
// messages, is listed beside them: replay() makes each wait for the last one. chosen_rank.h picks
// the rank that a question is answered for.

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
  /// Memory snapshots have no times; those of their graph are positions in a history.
  bool is_snapshot = false;
  Notes import_notes;  ///< Lists oddities that the importer found.
  /// The greatest level that the recorded allocator reports for each device.
  std::map<std::int32_t, Bytes> recorded_reserved;
  std::vector<SourceFile> files;
  std::optional<Trace> trace;  ///< Only where JobOptions ask for it.
  std::string refused;         ///< Why there is no graph; only where JobOptions ask for such ranks.
};

/// A rank of the whole job: recorded, or taken to be like one that was.
struct WorldRank {
  std::int32_t number = 0;
  std::uint32_t recorded = 0;  ///< Into Job::ranks.
  bool is_recorded = true;
};

struct Job {
  std::string path;         ///< As given.
  std::vector<Rank> ranks;  ///< Recorded ranks in order of their numbers. At least one.
  /// All that are replayed: the recorded ones, and others in order of their numbers where more are
  /// asked for.
  std::vector<WorldRank> world;
  RankJoin join;  ///< Its meetings are of `world`. Empty for a single rank, and if not asked for.
  std::string apart;  ///< Why the recordings are not of one job; empty if they are.

  /// Stands in front of errors of a rank: "runs/7: rank 1", and the path alone for the only rank.
  std::string place(const Rank& rank) const;
  /// The files that the ranks were read from, each once, in order of their paths. Reads them again
  /// for their checksums, on all cores. Throws TraceError.
  std::vector<InputFile> inputs() const;
  bool has_snapshots() const;
  /// Whether ranks wait for each other.
  bool is_joined() const { return !join.meetings.empty(); }
};

/// Whether ranks wait for each other.
enum class Joining : std::uint8_t {
  none,
  if_one_job,  ///< Job::apart says why recordings are not of one job.
  required,    ///< Recordings that are not of one job are a TraceError.
};

struct JobOptions {
  ImportOptions reading = {};
  /// Ranks keep what was recorded. Otherwise each trace goes as soon as its graph is made.
  bool keep_traces = false;
  /// Ranks that infer() refuses are part of the job. Otherwise they are a TraceError.
  bool keep_refused = false;
  Joining joining = Joining::none;
  /// A rank of them will be looked at alone: its waits for others are open time.
  bool keeps_waits_open = false;
  /// Ranks of the whole job; 0: as many as were recorded. The recorded ones stand for the others,
  /// by their places in the groups; see join_ranks().
  std::int32_t world_size = 0;
};

/// Imports rank after rank, and infers them on all cores. Throws TraceError.
Job read_job(const std::string& path, const JobOptions& options = {});

/// The rank of a job on one GPU. Throws Error, with `hint` at its end, where there are several.
const Rank& only_rank(const Job& job, const std::string& hint = "");

/// Closes the open time that JobOptions::keeps_waits_open left: waits of joined ranks.
void explain_waits(Job& job);

/// The job of ranks that were inferred already: without files or traces. Throws TraceError if they
/// are not of one job.
Job job_of(std::vector<Inference> ranks);

/// Replays a graph for each rank of the world, together where ranks meet. Ranks may share a graph:
/// their own, or an edited clone of it. Throws as simulate() does.
JointReplay replay(const Job& job, std::span<const Graph* const> graphs,
                   const JointOptions& options = {});
/// The same graphs, each with the time at which its rank begins; 0 where ranks do not meet.
std::vector<JoinedGraph> joined_graphs(const Job& job, std::span<const Graph* const> graphs);
/// The graphs as recorded, by rank of the world.
std::vector<const Graph*> graphs_of(const Job& job);

/// Makes each task of a meeting last as long as in the replay, waits for other ranks included, so
/// that a replay of the rank alone has the same times. `rank` is one of the world.
void keep_waits(const Job& job, std::size_t rank, const Timeline& replayed, Graph& graph);

Inference clone(const Inference& inference);

}  // namespace foretrace
