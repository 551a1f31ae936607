#pragma once

// The one place where transforms are applied.

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ask/job/job.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/ask/predict.h"
#include "foretrace/graph.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/notes.h"

namespace foretrace {

/// The traces that transforms learn from; each is read once. May be used from several threads.
class Donors {
 public:
  /// Whole traces, whatever part of its own the question is about.
  explicit Donors(const ImportOptions& how)
      : how_{.cache_folder = how.cache_folder, .max_unpacked = how.max_unpacked} {}
  /// Reads those that the scenario names. Throws Error with the place.
  void read(const Scenario& scenario);
  /// The rank of the `learner` in a trace that was read; the first rank, with a note, if it has
  /// several and not that one.
  const Graph& graph_for(const Graph& learner, const std::string& path, Notes& notes);

 private:
  ImportOptions how_;
  std::mutex mutex_;
  std::map<std::string, Job> jobs_;  ///< By path.
};

struct Applied {
  std::vector<AppliedStep> steps;
  std::size_t changed = 0;  ///< By all steps, as in Effect.
  std::vector<std::string> assumptions;
  Notes notes;
};

/// The summary of a step that was not meant for the graph.
inline constexpr std::string_view kNamesAnotherRank = "names another rank";
/// The note on a step without effect.
inline constexpr std::string_view kChangedNothing = "a step of the scenario changed nothing";

/// Whether the scenario changes the graph.
bool edits(const Scenario& scenario);

/// Whether its selectors name no rank, or only ranks of the graph.
bool is_for(Transform& transform, const Graph& graph);

/// Throws Error if a transform names a rank that the job does not have, or no task is of.
void check_ranks(const Scenario& scenario, const Job& job);
void check_ranks(const Scenario& scenario, const Graph& graph);

/// All that passes if everything happens in turn, in ns: may be more than the clock can count.
double total_length(const Graph& graph);

/// Moves the graph to the scenario's machine, then applies its transforms in order; those that name
/// another rank change nothing here. `donors` has read those of the scenario; nullptr if it can
/// have none. `other_ranks` are those of the job, as recorded.
Applied apply(const Scenario& scenario, Graph& graph, Donors* donors = nullptr,
              std::span<const Graph* const> other_ranks = {});
/// The same without the transforms from `end` on.
Applied apply_until(std::size_t end, const Scenario& scenario, Graph& graph, Donors* donors,
                    std::span<const Graph* const> other_ranks = {});
/// Only that transform, which has no donor.
Applied apply_only(std::size_t step, const Scenario& scenario, Graph& graph);

/// The settings that the predicted job's allocator has: those of the scenario, and the memory of
/// its machine for a limit where none is given.
AllocatorSettings allocator_of(const Scenario& scenario);

}  // namespace foretrace
