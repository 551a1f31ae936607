#pragma once

// The only place where transforms are applied.

#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/notes.h"
#include "foretrace/scenario.h"
#include "job/job.h"

namespace foretrace {

/// The traces that transforms learn from; each is read once. May be used from several threads.
class Donors {
 public:
  /// Traces are read whole, even if the question is about a part of its own trace.
  explicit Donors(const ImportOptions& reading)
      : reading_{.cache_folder = reading.cache_folder,
                 .max_unpacked = reading.max_unpacked,
                 .may_run = reading.may_run} {}
  /// Reads the traces that the scenario names. Throws Error with the place.
  void read(const Scenario& scenario);
  /// The graph of the learner's rank in a trace that was read; the first rank, with a note, if the
  /// trace has several and not that one.
  const Graph& graph_for(const Graph& learner, const std::string& path, Notes& notes);

 private:
  ImportOptions reading_;
  std::mutex mutex_;
  std::map<std::string, JobRanks> jobs_;  ///< By path.
};

struct ApplyResult {
  std::vector<AppliedStep> steps;
  std::size_t changed = 0;  ///< Sum over all steps; see Effect.
  std::vector<std::string> assumptions;
  Notes notes;
  Bytes device_memory{};  ///< Of the device that a step moves the work to; 0: none does.
};

/// Summary of a step that names another rank than the graph's.
inline constexpr std::string_view kNamesAnotherRank = "names another rank";
/// Text of the note on a step without effect.
inline constexpr std::string_view kChangedNothing = "a step of the scenario changed nothing";

/// Whether the scenario changes the graph.
bool edits(const Scenario& scenario);

/// Whether a transform applies to the graph: its selectors name no rank, or only ranks of the
/// graph.
bool applies_to(Transform& transform, const Graph& graph);

/// Throws Error if a transform names a rank that the job does not have, or that has no tasks.
void check_ranks(const Scenario& scenario, const JobRanks& job);
void check_ranks(const Scenario& scenario, const Graph& graph);

/// Time in ns if everything ran one after the other, which may be more than the clock can count.
double total_length(const Graph& graph);

/// Moves the graph to the scenario's machine, then applies its transforms in order, up to and
/// without transform `end`; transforms that name another rank change nothing here. `donors` has
/// read the scenario's donors; nullptr if it can have none. `other_ranks` are the other ranks of
/// the job, as recorded.
ApplyResult apply(const Scenario& scenario, Graph& graph, Donors* donors = nullptr,
                  std::span<const Graph* const> other_ranks = {},
                  std::size_t end = std::numeric_limits<std::size_t>::max());
/// Applies only transform `step`. REQUIRES: it has no donor.
ApplyResult apply_only(std::size_t step, const Scenario& scenario, Graph& graph);

/// Settings of the predicted job's allocator: those of the scenario; if it sets no limit, the
/// memory of its machine is the limit.
AllocatorSettings allocator_of(const Scenario& scenario);

}  // namespace foretrace
