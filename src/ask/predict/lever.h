#pragma once

// The parts of a graph that can be made faster, as programmers name them: launching, the network,
// loading. Pulled to 0, a lever gives a rung of the ladder of bounds; pulled part of the way, it
// answers how fast the part would have to be.
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
  /// The part of each task's time that gets faster.
  std::vector<std::pair<TaskId, Nanoseconds>> parts{};
  bool launch_delays = false;  ///< Includes delays from a launch to the start on the device.
  bool host_gaps = false;      ///< Includes gaps between tasks of host threads.
  Nanoseconds longest_host_gap = Nanoseconds::max();  ///< Only host gaps below this count.
  bool device_gaps = false;  ///< Includes short gaps between tasks of streams.
  bool host_waits = false;   ///< The host does not wait for the device; all or nothing.
  /// When pulled to 0, the host does not wait for copies to the device, or inside these calls.
  bool copy_waits = false, call_waits = false;
  bool there = false;  ///< Whether the graph has such work.

  bool graded() const { return !host_waits; }
};

/// The levers that the ladder of bounds pulls to 0, one by one. Driver calls that allocate are
/// among them only if there are any.
std::vector<Lever> ladder_levers(const Graph& graph);

/// A longer piece of host work is not part of launching, whatever the framework: dispatching an op
/// takes 2 us to 200 us (recalled), so this is a pause, a load, an allocation or a lock.
constexpr Nanoseconds kLongestDispatch = 1ms;

/// The host work in pieces longer than kLongestDispatch, of the name with most time; the title is
/// the name. The lever is empty if there is no such work.
Lever long_host_work(const Graph& graph);

/// Whether a driver call allocates or frees memory: "cudaMalloc", "hipFree", "cuMemAlloc_v2" ...,
/// but not from a pool (cudaMallocAsync).
bool is_driver_allocation(std::string_view call);

/// The levers of the ladder, and the lever of all kernels.
std::vector<Lever> all_levers(const Graph& graph);

/// The levers that users name: kernels, the kernel names that take most of the time, host.work,
/// launch.overhead, input.time, copy.bandwidth, link.bandwidth, syncs.
std::vector<Lever> speed_levers(const Graph& graph);

/// The lever of a name; "kernels.PATTERN" selects kernels with the pattern in their name or module.
/// Throws Error, with the nearest name, if there is none.
Lever lever_named(const Graph& graph, std::string_view name);

/// The lever's work in a steady step.
Nanoseconds work_of(const Graph& graph, const Lever& lever);

void pull(Graph& graph, const Lever& lever, double factor);

/// The changes of pull() that concern neither waits nor bytes.
Retiming retiming_of(const Graph& graph, const Lever& lever, double factor);

}  // namespace foretrace
