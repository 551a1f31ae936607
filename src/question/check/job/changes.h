#pragma once

// Differences between two summaries of a job, place by place, and the cost of each.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/question/check.h"
#include "question/check/job/job_summary.h"
#include "question/check/job/kernels.h"

namespace foretrace {

/// One kind of work at one place, before and after the change.
struct WorkChange {
  JobGroup before, after;          ///< Sums if several groups correspond; empty if no group does.
  std::vector<std::uint32_t> now;  ///< Indices of the groups in the judged job.
  TaskKind kind = TaskKind::host;
  std::string op, module, file, function;
  std::string replaced;  ///< Names of kernels that others replaced.
  /// `before` includes work that was at other places, or lacks work that is now there.
  bool moved = false;
  std::int64_t came = 0;  ///< Number of tasks that came from other places.
  double expected = 1;    ///< Factor by which all work of the kind is slower.
  /// The same number of kernels takes clearly longer than in any step before.
  bool stands_out = false;
  Nanoseconds added() const;  ///< Work beyond the expected amount.
  std::int64_t more() const { return after.count - before.count; }
  bool has_more_tasks() const { return more() > 0; }
  /// Whether it is a wait that is only at another place, where it may wait for more.
  bool is_moved_wait() const { return kind == TaskKind::sync && came > 0 && more() == 0; }
  bool is_other_work() const;   ///< It moved or was replaced, so times are not those of the same.
  Nanoseconds exposed() const;  ///< Work that is no longer hidden behind kernels.
};

/// Work of one kind that is slower everywhere.
struct GeneralChange {
  TaskKind kind = TaskKind::host;  ///< kernel, launch, or host, which means all host work.
  double factor = 1;
  Nanoseconds before{0};
  std::vector<std::uint32_t> now;
};

struct WorkChanges {
  std::vector<WorkChange> changes;  ///< Only where something is worse, in a stable order.
  std::vector<GeneralChange> general;
};
/// Merges the same change in several instances of a module into one.
std::vector<WorkChange> merged_instances(const std::vector<WorkChange>& changes);

WorkChanges work_changes(const JobSummary& before, const JobSummary& after);

/// Merges instances, and sets `stands_out` where the kernels of one place became much slower,
/// although a step, which has many others, may hardly show it.
std::vector<WorkChange> marked_changes(const JobSummary& before,
                                       const std::vector<WorkChange>& changes);

/// Number of places where kernels stand out.
std::int64_t slower_places(const JobSummary& before, const JobSummary& now);

/// Merges groups of the same kind and name, wherever they are.
JobSummary at_any_place(const JobSummary& summary);

/// Work to remove from the job in order to measure its effect.
struct RemovedWork {
  std::uint32_t group = 0;
  double left = 0;               ///< Share of the work of each task that stays.
  std::int64_t freed_syncs = 0;  ///< Number of waits to remove in each step.
  std::vector<int> lines;        ///< Waits at these lines are freed first.
};

/// How much shorter a step is when the job is replayed without `taken`; negative if it is longer.
Nanoseconds effect_of(const ObservedJob& job, const Grouping& grouping,
                      const std::vector<RemovedWork>& taken);

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

/// A cause, and the standing of the figure that it explains.
struct CauseCandidate {
  CheckCause cause;
  CheckOutcome standing = CheckOutcome::passed;
  std::vector<std::uint32_t> groups =
      /// Groups of slower kernels that the cause covers; indices into the question's grouping.
      {};
};

/// The figure of this name if it is worse; otherwise null.
const CheckedFigure* worse_figure(const CausesQuestion& question, std::string_view name);

/// Describes a place for work that has none of its own: where the longest of `tasks` is. Sets file
/// and line of `cause`. Returns empty text if nothing is known.
std::string position_of(const ObservedJob& job, const std::vector<TaskId>& tasks,
                        CheckCause& cause);

/// Adds causes for more memory at the peak, and for memory that is never freed.
void add_memory(const CausesQuestion& question, std::vector<CauseCandidate>& found);

/// Adds the kernels of one name and shape that became slower, except those of which causes in
/// `found` already cover most tasks.
void add_slower_kernels(const CausesQuestion& question, std::vector<CauseCandidate>& found);

/// Adds the excess work of the slowest step, if that step or the mean is worse, or if nothing in
/// `found` explains a worse step time.
void add_slowest_step(const CausesQuestion& question, std::vector<CauseCandidate>& found);

/// The lines of `after` that have no counterpart in `before`, after the best common shift of all
/// lines.
std::vector<int> new_lines(const JobGroup& before, const JobGroup& after);

/// `file` relative to the root of the sources; unchanged if it is not found there.
std::string file_in_sources(const std::string& file, const std::string& source_root);

}  // namespace foretrace
