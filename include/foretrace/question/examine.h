#pragma once

// Questions about a recording as it is: does it wait for input, what uses its memory, were causes
// found. Each reads the file and gives the answer; a folder or a report of several processes holds
// the ranks of one job.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/allocator.h"
#include "foretrace/answer/diagnosis.h"
#include "foretrace/answer/input.h"
#include "foretrace/answer/memory.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/answer/validation.h"
#include "foretrace/graph.h"
#include "foretrace/import.h"
#include "foretrace/question/pairs.h"
#include "foretrace/question/predict.h"

namespace foretrace {

/// A trace as it was recorded, with facts from its graph.
struct ExaminedTrace {
  Trace trace;
  std::optional<StepTimes> steps;  ///< Empty if infer() refuses it, or if it has no times.
  Breakdown breakdown;             ///< Of a step, if it has steps.
  Nanoseconds communication{0};    ///< Time of a step in which collectives run, hidden or not.
  std::optional<RankFacts> among;  ///< Empty if it shares no collective with another rank.
};
/// Examines all ranks, in their order.
std::vector<ExaminedTrace> examine_traces(const std::string& path,
                                          const ImportOptions& reading = {});

struct InputQuestion {
  std::string synthetic;     ///< Trace of the same job with synthetic batches, made on the device.
  std::string cached;        ///< Trace of the same job with all its data in memory.
  double samples = 0;        ///< Samples in a batch; 0: unknown.
  std::int64_t workers = 0;  ///< Loader processes of the recorded job; 0: not known.
  /// Share of its data that was cached when it was recorded; below 0: unknown.
  double cached_share = -1;
  std::string policy = "page_cache";
};

/// Examines the slowest rank. Throws TraceError for a memory snapshot.
InputReport examine_input(const std::string& path, const InputQuestion& question,
                          const ImportOptions& reading = {});

/// Finds what is missing in a trace. `has_all_ranks`: the traces of all ranks are there.
std::vector<Finding> examine(const Trace& trace, bool has_all_ranks = false);
/// Diagnoses each rank, with the replay of the unmodified job.
std::vector<Diagnosis> diagnose(const std::string& path, const ImportOptions& reading = {});

struct ExaminedMemory {
  MemoryReport report;
  Graph graph;  ///< With the blocks that the report names.
};

/// Examines the fullest rank, with a summary of all. Throws TraceError if no rank records
/// memory.
ExaminedMemory examine_memory(const std::string& path, const MemoryQuestion& question,
                              const AllocatorSettings& allocator,
                              const ImportOptions& reading = {});

/// Validates each rank; with `against`, uses the structure of `path` and the work of that other
/// recording of the same job.
std::vector<ValidatedRank> validate_trace(const std::string& path, const std::string& against,
                                          const ImportOptions& reading = {});

}  // namespace foretrace
