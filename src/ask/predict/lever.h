#pragma once

// The parts of a graph that can be made faster, as programmers name them: launching, the network,
// loading. A lever pulled to 0 is a rung of the ladder of bounds; pulled part of the way it answers
// "how fast would it have to be".
//
//     factor 1    as recorded
//     factor 0.5  the work takes half of its time, waits follow
//     factor 0    no time at all

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ask/job/retimed.h"
#include "foretrace/graph.h"

namespace foretrace {

struct Lever {
  std::string name, title, assumes;
  std::vector<std::pair<TaskId, Nanoseconds>> parts{};  ///< The part of each task that gets faster.
  bool launch_delays = false;  ///< Also the delay from a launch to the start on the device.
  bool host_gaps = false;      ///< Also gaps between tasks of host threads.
  Nanoseconds longest_host_gap = Nanoseconds::max();  ///< Number of these.
  bool device_gaps = false;                           ///< Also short gaps between tasks of streams.
  bool host_waits = false;  ///< The host does not wait for the device: there or not.
  /// Pulled to 0: the host does not wait for copies to the device, or inside these calls.
  bool copy_waits = false, call_waits = false;
  bool there = false;  ///< Whether there is anything to pull at.

  bool graded() const { return !host_waits; }
};

/// The levers that the ladder of bounds pulls to 0, one by one. Driver calls that allocate are
/// among them only where there are any.
std::vector<Lever> ladder_levers(const Graph& graph);

/// Longer host work of one piece is not part of launching, whatever the framework: dispatching an
/// op takes 2 us to 200 us (recalled), so this is a pause, a load, an allocation or a lock.
constexpr Nanoseconds kLongestDispatch = 1ms;

/// Takes host work in pieces longer than kLongestDispatch, and from that the name with the most
/// time; the title is the name. The lever is empty if there is no such work.
Lever long_host_work(const Graph& graph);

/// Calls of the driver that allocate or free memory: "cudaMalloc", "hipFree", "cuMemAlloc_v2" ...;
/// not those of a pool (cudaMallocAsync).
bool is_driver_allocation(std::string_view call);

/// The levers of the ladder, and that of all kernels.
std::vector<Lever> all_levers(const Graph& graph);

/// The levers by name: kernels, the names that take most of their time, host.work, launch.overhead,
/// input.time, copy.bandwidth, link.bandwidth, syncs.
std::vector<Lever> speed_levers(const Graph& graph);

/// One by its name; "kernels.PATTERN" selects kernels with the pattern in their name or module.
/// Throws Error, with the nearest, if there is none.
Lever lever_named(const Graph& graph, std::string_view name);

/// The lever's work in a steady step.
Nanoseconds work_of(const Graph& graph, const Lever& lever);

void pull(Graph& graph, const Lever& lever, double factor);

/// The part of pull() that changes neither waits nor bytes.
Retiming retiming_of(const Graph& graph, const Lever& lever, double factor);

}  // namespace foretrace
