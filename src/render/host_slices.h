#pragma once

// Converts host lanes to records of threads. Tasks become calls and ops in order; annotations
// around them give their step, phase and module. A call that submits work and then waits is two
// tasks but one call:
//
//     tasks    |cudaMemcpy|..........|cudaMemcpy|
//     written  |cudaMemcpy......................|
//
// Tasks with names in parentheses, "(between records)", stand for time without records, and are not
// written.

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
  std::uint32_t details = kNone;  ///< Index into Trace::op_details.
  TaskId task = kNoTask;          ///< kNoTask for an annotation.
  TaskId launch = kNoTask;        ///< The task that device tasks of this call depend on.
  bool waits = false;  ///< True if the call waits for device tasks; `task` is the task that waits.
  bool correlated() const { return launch != kNoTask || waits; }
};

/// Whether tasks of the lane run on a thread, rather than on a device.
bool is_host_lane(const Lane& lane);

/// Slices by lane, outer slices before inner ones; empty for device lanes. Tasks of one host record
/// become one slice around what runs between them. `recorded` describes the records, and may be
/// nullptr.
using HostSlices = std::vector<std::vector<HostSlice>>;
HostSlices host_slices(const Graph& graph, const Timeline& timeline, const Trace* recorded);

/// The device lanes that `task` waits for, each once, in order.
std::vector<LaneId> awaited_lanes(const Graph& graph, TaskId task);

}  // namespace foretrace
