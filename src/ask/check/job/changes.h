#pragma once

// Differences between two summaries of a job, place by place, and the cost of each.

#include <cstdint>
#include <string>
#include <vector>

#include "ask/check/job/job_summary.h"
#include "ask/check/job/kernels.h"
#include "foretrace/ask/check.h"

namespace foretrace {

/// One kind of work at one place, then and now.
struct WorkChange {
  JobGroup before, after;  ///< Sums where several groups correspond. Empty where there is none.
  std::vector<std::uint32_t> now;  ///< Groups of the job that is judged.
  TaskKind kind = TaskKind::host;
  std::string op, module, file, function;
  std::string replaced;       ///< Names that were replaced by others.
  double expected = 1;        ///< By how much all work of the kind is slower.
  bool stands_out = false;    ///< As many kernels take longer than in any step before.
  Nanoseconds added() const;  ///< Work beyond the expected amount.
  std::int64_t more() const { return after.count - before.count; }
  Nanoseconds bared() const;  ///< Work that is no longer hidden behind kernels.
};

/// Work of one kind that is slower everywhere.
struct GeneralChange {
  TaskKind kind = TaskKind::host;  ///< With host, all work of hosts.
  double factor = 1;
  Nanoseconds before{0};
  std::vector<std::uint32_t> now;
};

struct WorkChanges {
  std::vector<WorkChange> changes;  ///< Only where something is worse, in a stable order.
  std::vector<GeneralChange> general;
};
/// The same change in several instances of a module is one.
std::vector<WorkChange> merged_instances(const std::vector<WorkChange>& changes);

WorkChanges work_changes(const JobSummary& before, const std::vector<JobGroup>& after);

/// Instances merged, and with `stands_out` where kernels of one place became much slower, although
/// a step, which has many others, may hardly show it.
std::vector<WorkChange> marked_changes(const JobSummary& before,
                                       const std::vector<WorkChange>& changes);

/// Groups of the same kind and name as one, wherever they are.
JobSummary at_any_place(const JobSummary& summary);

/// Work to remove from the job in order to see its cost.
struct TakenAway {
  std::uint32_t group = 0;
  double left = 0;               ///< Share of the work of each task that stays.
  std::int64_t freed_syncs = 0;  ///< In a step, these many no longer wait.
  std::vector<int> lines;        ///< Waits at these lines are freed first.
};

/// By how much the step would be shorter.
Nanoseconds effect_of(const ObservedJob& job, const Grouping& grouping,
                      const std::vector<TakenAway>& taken);

struct CausesQuestion {
  const ObservedJob& job;
  const Grouping& grouping;
  const JobKernels& kernels;
  const JobSummary& before;
  const JobSummary& after;
  const std::vector<CheckedFigure>& figures;
};
/// Causes of the figures that are worse, greatest first.
std::vector<CheckCause> causes_of(const CausesQuestion& question);

/// A cause with how bad the figure is that it explains.
struct FoundCause {
  CheckCause cause;
  Standing standing = Standing::passed;
  std::vector<std::uint32_t> groups =
      {};  ///< With kernels that it has; of the question's grouping.
};

/// The figure of this name, if it is worse; otherwise null.
const CheckedFigure* worse_figure(const CausesQuestion& question, std::string_view name);

/// The place of work that has none of its own: where the longest of `tasks` is. It sets file and
/// line of `cause`; empty if nothing is known.
std::string position_of(const ObservedJob& job, const std::vector<TaskId>& tasks,
                        CheckCause& cause);

/// Adds causes for more memory at the peak, and for memory that is never freed.
void add_memory(const CausesQuestion& question, std::vector<FoundCause>& found);

/// Adds the kernels of one name and shape that became slower, unless a cause in `found` has half of
/// it.
void add_slower_kernels(const CausesQuestion& question, std::vector<FoundCause>& found);

/// Adds the excess work of the slowest step, if that step or the mean is worse, or if nothing in
/// `found` explains a worse step time.
void add_slowest_step(const CausesQuestion& question, std::vector<FoundCause>& found);

/// The lines of `after` that have no counterpart in `before`, which may have moved as a whole.
std::vector<int> new_lines(const JobGroup& before, const JobGroup& after);

/// `file` as it is called from the root of the sources; unchanged if it is not found there.
std::string file_in_sources(const std::string& file, const std::string& source_root);

}  // namespace foretrace
