#pragma once

// The parts of a graph that can be made faster, as programmers name them: launching, the network,
// loading. With its work scaled to 0, a group gives a ceiling of the ladder; with a factor above 0,
// it answers how fast the work would have to be.
//
//     factor 1    as recorded
//     factor 0.5  the work takes half of its time, waits follow
//     factor 0    no time at all

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/graph.h"
#include "job/job_graph.h"
#include "job/retimed_replay.h"

namespace foretrace {

struct WorkGroup {
  std::string name, title, assumes;
  /// The part of each task's time that gets faster.
  std::vector<std::pair<TaskId, Nanoseconds>> parts{};
  bool launch_delays = false;  ///< Includes delays from a launch to the start on the device.
  bool host_gaps = false;      ///< Includes gaps between tasks of host threads.
  Nanoseconds longest_host_gap = Nanoseconds::max();  ///< Only host gaps below this count.
  bool device_gaps = false;  ///< Includes short gaps between tasks of streams.
  bool host_waits = false;   ///< The host does not wait for the device; all or nothing.
  /// Scaled to 0, the host does not wait for copies to the device, or inside these calls.
  bool copy_waits = false, call_waits = false;
  bool late_ranks = false;  ///< Scaled to 0, ranks do not wait for each other either.
  bool has_work = false;    ///< Whether the graph has such work.

  bool graded() const { return !host_waits; }
};

/// The groups that the ladder scales to 0, one by one. Driver calls that allocate are among them
/// only if there are any.
std::vector<WorkGroup> ladder_groups(const Graph& graph);

/// A longer piece of host work is not part of launching, whatever the framework: dispatching an op
/// takes 2 us to 200 us (recalled), so this is a pause, a load, an allocation or a lock.
constexpr Nanoseconds kLongestDispatch = 1ms;

/// The host work in pieces longer than kLongestDispatch, of the name that has most time in the
/// advised rank; the title is the name. The group is empty if there is no such work.
WorkGroup long_host_work(const JobGraph& job);

/// The groups of the ladder, and all kernels.
std::vector<WorkGroup> all_groups(const Graph& graph);

/// The groups that users name: kernels, the kernel names that take most of the time, host.work,
/// launch.overhead, input.time, copy.bandwidth, link.bandwidth, syncs.
std::vector<WorkGroup> named_groups(const Graph& graph);

/// The group of a name; "kernels.PATTERN" selects kernels with the pattern in their name or module.
/// Throws Error, with the nearest name, if there is none.
WorkGroup group_named(const Graph& graph, std::string_view name);

/// The group's work in a steady step of the advised rank; `group` is one of job.graph().
Nanoseconds work_of(const JobGraph& job, const WorkGroup& group);

/// Multiplies the time of a group's work by `factor`.
void scale_work(Graph& graph, const WorkGroup& group, double factor);

/// The changes of scale_work() that concern neither waits nor bytes.
Retiming retiming_of(const Graph& graph, const WorkGroup& group, double factor);

}  // namespace foretrace
