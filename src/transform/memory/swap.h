#pragma once

// Blocks that leave the device for host memory and come back: the plan, and the edits that carry it
// out. Two planners make plans, by access interval and by layer.
//
//     stream    |A...P......B|     a block that A and B use, and that takes room at P
//     swap out  |.oooo.......|
//     swap in   |.......iiii.|     away from the end of o to the start of i

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/timeline.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/edit.h"

namespace foretrace {

/// The link to host memory, each way.
struct SwapLink {
  Bandwidth out{}, in{};
  Nanoseconds out_time(Bytes size) const;
  Nanoseconds in_time(Bytes size) const;
};

/// One trip of a block. Times are those of the unmodified graph.
struct Swap {
  std::uint32_t allocation = 0;
  TaskId out_after = kNoTask;  ///< The copy out waits for this ...
  Anchor out_anchor = Anchor::finish;
  TaskId freed_at = kNoTask;  ///< Waits for the copy out; it and later tasks may use the memory.
  TaskId trigger = kNoTask;   ///< The copy in waits for this, if there is one ...
  Anchor trigger_anchor = Anchor::finish;
  TaskId synced = kNoTask;      ///< Waits for the copy in although it does not need the block.
  TaskId back = kNoTask;        ///< Touches the block again.
  TaskId out_behind = kNoTask;  ///< Copies of the trace on the same link that come first, if any.
  TaskId in_behind = kNoTask;
  Nanoseconds out_start{}, in_start{};  ///< As planned.
  bool hidden = true;                   ///< Planned so that nothing waits for it.
};

struct SwapPlan {
  std::vector<Swap> swaps;
  bool in_access_order = false;  ///< Copies go in the order of accesses, not of planned times.
  std::size_t considered = 0;    ///< Idle times between accesses that were examined.
  std::size_t hideable = 0;      ///< How many of these are long enough to leave and come back.
};

/// An access to a block. timed_accesses() returns them in order of time.
struct TimedAccess {
  TaskId task = kNoTask;
  Nanoseconds start{}, finish{};
  bool writes = false;
};
std::vector<TimedAccess> timed_accesses(const Graph& graph, const Timeline& timeline,
                                        const AccessLists& accesses, std::uint32_t allocation);

/// Whether host calls free the memory of `block`, in their order, as with an allocator that a host
/// thread calls and that follows streams. Otherwise the memory is free when the copy out is done.
bool freed_by_calls(const Graph& graph, const Allocation& block);

struct IntervalSettings {
  AllocationSelector where;
  std::string score = "swdoa";  ///< doa, aoa, wdoa or swdoa.
  Bytes min_bytes{1'000'000};
  bool hidden_only = true;
  Bytes saved_bytes{};  ///< Bytes to save at the peak of a device; 0: as many as possible.
  double share = 0;     ///< The same, as a share of the peak.
  Bytes target{};       ///< The same, as the remaining peak.
};
SwapPlan plan_by_interval(const Graph& graph, const Timeline& timeline, const Launches& launches,
                          const SwapLink& link, const IntervalSettings& settings);

/// Plans as vDNN does: the inputs of every layer, or of convolutions only, leave.
SwapPlan plan_by_layer(const Graph& graph, const Timeline& timeline, bool convolutions_only,
                       Bytes min_bytes, const AllocationSelector& where);

struct SwapOutcome {
  Bytes offloaded{};     ///< Total size of all copies out.
  Bytes host_memory{};   ///< Most offloaded bytes on the host at once.
  std::size_t late = 0;  ///< Copies that a task then waits for.
  std::size_t copies = 0;
};
/// Edits the graph by `plan`. `call_time` is the host time of each call that issues a copy. Sets
/// `after` to the replay of the edited graph.
SwapOutcome apply_swaps(Graph& graph, const Timeline& timeline, const Launches& launches,
                        const SwapLink& link, const SwapPlan& plan, Nanoseconds call_time,
                        Timeline& after);

}  // namespace foretrace
