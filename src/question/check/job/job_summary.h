#pragma once

// A job reduced to a summary that a later recording can be compared with, step by step. One file
// for each part: groups of work, figures, memory.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/place/call_site.h"
#include "foretrace/graph.h"
#include "foretrace/question/check.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

/// The subject of a summary: a recording, or the replay of a what-if on it.
struct ObservedJob {
  const Trace& trace;
  const Graph& graph;
  const Timeline& timeline;
  const Timeline& replayed;  ///< Replay that recorded the reason of each start.
  const CallSites& sites;
  std::size_t recorded_tasks = 0;  ///< Tasks with higher ids were added by transforms.
  bool is_edited = false;
};

/// The steps that the step time is taken from. Steps of one period, if steps alternate, share a
/// column. A graph without steps counts as one step.
class SteadySteps {
 public:
  explicit SteadySteps(const Graph& graph);
  std::size_t count() const { return count_; }
  /// The share of one step in a sum over a column; rounded up, so that nothing vanishes.
  std::int64_t per_step(std::int64_t sum) const { return (sum + period_ - 1) / period_; }
  std::optional<std::size_t> column(std::int32_t step) const;

 private:
  std::vector<std::int32_t> columns_;  ///< By step; -1 for steps that are left out.
  std::size_t count_ = 1;
  std::int64_t period_ = 1;
};

/// How long each copy and collective runs beside kernels of its device, and on which stream each
/// device has most kernels.
class KernelOverlap {
 public:
  KernelOverlap(const Graph& graph, const Timeline& timeline);
  Nanoseconds hidden(TaskId task) const;
  bool is_on_side_stream(TaskId task) const;

 private:
  struct DeviceKernels {
    std::vector<std::pair<Nanoseconds, Nanoseconds>> kernels;  ///< Disjoint, in order.
    std::vector<Nanoseconds> before;  ///< Total length of the earlier kernels.
    LaneId main = kNoLane;
  };
  Nanoseconds busy_until(const DeviceKernels& device, Nanoseconds time) const;
  const Graph& graph_;
  const Timeline& timeline_;
  std::vector<DeviceKernels> devices_;
};

bool is_pageable(std::string_view name);
bool waits_for_event(std::string_view name);
/// Whether a task is a call that waits for a device, even if the device was idle already.
bool is_synchronizing(const ObservedJob& job, TaskId task);
/// The host record of a task on a host thread or loading worker; kNone for other tasks.
std::uint32_t host_record(const ObservedJob& job, TaskId task);

/// A name without parts that differ between builds, sizes and runs: arguments of templates,
/// numbers, addresses, folders.
std::string plain_name(std::string_view name, bool is_kernel);

/// "Block_3/Linear_1" -> "Block_*/Linear_*"
std::string without_instances(std::string_view module);

/// The groups of a job, and the group of each task.
struct Grouping {
  int detail = 0;
  std::vector<JobGroup> groups;
  std::vector<std::uint32_t> group_of;  ///< By task; kNone for tasks of steps that are left out.
};
/// Groups the work at level `detail`, that of the baseline; without it, at the finest level that
/// keeps the baseline file small enough to be committed.
Grouping group_work(const ObservedJob& job, std::optional<int> detail);

struct JobMemory {
  std::vector<MemoryGroup> groups;
  std::optional<Bytes> growth;  ///< From step to step.
};
JobMemory memory_of(const ObservedJob& job);

}  // namespace foretrace
