#pragma once

// Host lanes as records of threads. Tasks become calls and ops in line; around them the annotations
// that say which step and phase they belong to, and of which module they are. A call that hands
// over work and then waits is two tasks but one call:
//
//     tasks    |cudaMemcpy|..........|cudaMemcpy|
//     written  |cudaMemcpy......................|
//
// Tasks with names in parentheses, "(between records)", stand for time of which nothing was
// recorded; nor is it written.

#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

struct HostSlice {
  Nanoseconds start{0}, finish{0};
  HostKind kind = HostKind::op;
  std::string name;  ///< Names an annotation or a call; otherwise equals that of `task`.
  std::uint32_t details = kNone;  ///< Into Trace::op_details.
  TaskId task = kNoTask;          ///< kNoTask for an annotation.
  TaskId launch = kNoTask;        ///< The task that device tasks of this call depend on.
  bool waits = false;             ///< For device tasks; `task` is the one that does.
  bool correlated() const { return launch != kNoTask || waits; }
};

/// Whether tasks of the lane run on a thread, rather than on a device.
bool is_host_lane(const Lane& lane);

/// By lane, outer slices in front of those inside them; empty for lanes of devices. Tasks of one
/// host record become one slice around what runs between them; `recorded` says what the records
/// were, and may be missing.
using HostSlices = std::vector<std::vector<HostSlice>>;
HostSlices host_slices(const Graph& graph, const Timeline& timeline, const Trace* recorded);

/// The device lanes that `task` waits for, each once, in order.
std::vector<LaneId> awaited_lanes(const Graph& graph, TaskId task);

}  // namespace foretrace
