#pragma once

// The measurements that `check` takes of a job. A figure, which its users call a metric, is one
// entry of the table in figures.cc: its name and limits, how it is measured, and which changes make
// it worse.
//
//     of_kind     time, bytes or number of such tasks in a step    kernels, copy_time
//     of_task     the same, of tasks chosen in another way          syncs, host_time
//     of_job      the values of all steps, or a single one          step_time, overlap
//     of_memory   the same, also of memory snapshots                peak_allocated
//     against     a comparison with the baseline                    slower_kernels

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "foretrace/answer/memory_peak.h"
#include "foretrace/graph.h"
#include "foretrace/question/check.h"
#include "foretrace/timeline.h"
#include "question/check/job/job_summary.h"

namespace foretrace {

struct WorkChange;

/// Names of figures that other code refers to.
inline constexpr const char* kStepTime = "step_time";
inline constexpr const char* kMeanStep = "mean_step";
inline constexpr const char* kSlowestStep = "slowest_step";
inline constexpr const char* kSlowestExcess = "slowest_excess";
inline constexpr const char* kSlowerKernels = "slower_kernels";
inline constexpr const char* kCollectiveTime = "collective_time";
inline constexpr const char* kExposedCommunication = "exposed_communication";
inline constexpr const char* kPeakAllocated = "peak_allocated";
inline constexpr const char* kPeakReserved = "peak_reserved";
inline constexpr const char* kMemoryGrowth = "memory_growth";

/// A copy between any two places, but no collective.
inline bool is_copy_work(TaskKind kind) {
  return runs_on_device(kind) && moves_bytes(kind) && kind != TaskKind::collective;
}

/// A task of a counted step, on a device or on a host thread.
struct CountedTask {
  const ObservedJob& job;
  TaskId id;
  const Task& task;
  bool is_step_work = false;  ///< On the host: its thread works for the step.
  /// On the host: the first piece of a call, which may be cut into several.
  bool begins_call = false;
};

struct MeasuredJob {
  const ObservedJob& job;
  StepTimes recorded, replayed;
  InputStalls stalls;
  Breakdown parts;
};

struct MeasuredMemory {
  const std::vector<MemoryPeak>& peaks;
  std::optional<Bytes> growth;
};

using StepValues = std::vector<std::int64_t>;

struct FigureRule {
  FigureEntry entry;
  /// Exactly one of these five is set and measures the figure. A job for which it returns no values
  /// lacks the figure.
  bool (*of_kind)(TaskKind kind) = nullptr;
  bool (*of_task)(const CountedTask& task) = nullptr;
  StepValues (*of_job)(const MeasuredJob& job) = nullptr;
  StepValues (*of_memory)(const MeasuredMemory& memory) = nullptr;
  StepValues (*against)(const JobSummary& before, const JobSummary& now) = nullptr;
  bool needs_collectives = false;  ///< Jobs without collectives lack the figure.
  /// Whether a change at one place makes the figure worse. nullptr means: if the change is
  /// `of_kind` and adds to what is summed.
  bool (*weighs)(const WorkChange& change) = nullptr;
  /// Whether the figure becomes worse if all work of a kind is slower; nullptr means never.
  bool (*slows_with)(TaskKind kind) = nullptr;
  bool has_own_causes = false;  ///< Its causes are found by other means than changes at places.
  bool may_fall = false;        ///< Its values may be below 0.
  int since_schema = 1;         ///< Baselines of an earlier schema compute it in another way.
};
std::span<const FigureRule> figure_rules();
/// REQUIRES: there is a figure of this name.
const FigureRule& figure_rule(std::string_view name);

/// Whether a change at one place makes the figure worse.
bool weighs_on(const WorkChange& change, const FigureRule& rule);

/// All figures except those of memory. Figures that compare with a baseline stay empty until
/// compare_kernels() fills them in.
FigureSteps figures_of(const ObservedJob& job);
void add_memory_figures(const MeasuredMemory& memory, FigureSteps& figures);
/// Fills in the figures of `now` that compare kernels with those of `before`: which are slower, and
/// where.
void compare_kernels(const JobSummary& before, JobSummary& now);

/// The length of a step and its usual length: the lower median of all steps at its place in the
/// period. For two steps that is the faster one.
struct UsualLength {
  Nanoseconds length{0}, usual{0};
  Nanoseconds more() const { return length - usual; }
};
/// One for each step from StepTimes::first on.
std::vector<UsualLength> usual_lengths(const StepTimes& times);

/// Lengths of the steps (or periods) that the step time is taken from.
StepValues counted_lengths(const StepTimes& times);
/// The value of step_time. Returns nullopt if the job has no steps.
std::optional<Nanoseconds> step_time_of(const JobSummary& summary);

}  // namespace foretrace
