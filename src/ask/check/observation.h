#pragma once

// An observed job: one rank in full, and the facts about all ranks that its figures need.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ask/check/job/job_summary.h"
#include "ask/check/job/kernels.h"
#include "ask/job/apply.h"
#include "ask/job/job.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/ask/check.h"
#include "foretrace/infer.h"

namespace foretrace {

/// One rank, as recorded or after a what-if.
struct CheckedRank {
  const Rank* source = nullptr;
  Graph edited;
  bool is_edited = false;
  Timeline replayed;
  std::vector<MemoryPeak> peaks;

  const Inference& inference() const { return source->inference; }
  const Trace& trace() const { return *source->trace; }
  const Graph& graph() const { return is_edited ? edited : inference().graph; }
  const Timeline& timeline() const { return is_edited ? replayed : inference().recorded; }
  Nanoseconds step_time() const { return step_times(graph(), timeline()).step_time; }
};

/// The rank that is examined, and facts about all ranks.
struct CheckedJob {
  CheckedRank rank;
  /// Step lengths of the slowest rank, if it is another one.
  std::optional<std::vector<std::int64_t>> slowest_steps;
  std::vector<MemoryPeak> highest_peaks;  ///< Of the rank that needs most memory.
  Notes notes;
};
/// Chooses rank `wanted`, that of the baseline, or the slowest rank if `wanted` is empty or not in
/// the job. REQUIRES: `job` keeps its traces and outlives the result.
CheckedJob checked_job(const Job& job, const Scenario& scenario, Donors& donors,
                       std::optional<std::int32_t> wanted);

struct Observation {
  ObservedJob job;
  Grouping grouping;
  JobKernels kernels;
  JobSummary summary;
};
Observation observation_of(const CheckedJob& job, const CallSites& sites,
                           std::optional<int> detail);

}  // namespace foretrace
