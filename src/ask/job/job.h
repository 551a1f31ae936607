#pragma once

// A job: the ranks that ran together, each with the graph of its own recording, and the files that
// they were read from.
//
//     files --import--> traces --infer--> ranks
//
// The ranks are apart: no task of one waits for a task of another. What a question needs of each is
// here, and chosen_rank.h picks the one that it is answered for.

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

struct Job {
  std::string path;         ///< As given.
  std::vector<Rank> ranks;  ///< In order of their numbers. At least one.

  /// Stands in front of errors of a rank: "runs/7: rank 1", and the path alone for the only rank.
  std::string place(const Rank& rank) const;
  /// The files that the ranks were read from, each once, in order of their paths. Reads them again
  /// for their checksums, on all cores. Throws TraceError.
  std::vector<InputFile> inputs() const;
  bool has_snapshots() const;
};

struct JobOptions {
  ImportOptions reading = {};
  /// Ranks keep what was recorded. Otherwise each trace goes as soon as its graph is made.
  bool keep_traces = false;
  /// Ranks that infer() refuses are part of the job. Otherwise they are a TraceError.
  bool keep_refused = false;
};

/// Imports rank after rank, and infers them on all cores. Throws TraceError.
Job read_job(const std::string& path, const JobOptions& options = {});

/// The job of ranks that were inferred already: without files or traces.
Job job_of(std::vector<Inference> ranks);

Inference clone(const Inference& inference);

}  // namespace foretrace
