#pragma once

// Timelines without categories say by the names of their lanes what ran where:
//
//     process           thread                                   what it holds
//     /device:GPU:0     Stream #14(Compute), Stream 7            work of a stream (XLA, JAX)
//                       XLA Ops, XLA Modules, Steps ...          the same work again, summed up
//     /device:TPU:0     XLA Ops                                  work, as there are no streams
//     GPU0, COPY        0, 1 ...                                 work of a queue (rocprof)
//     Ascend Hardware   Stream 2 ...                             work of a stream (Ascend)
//     any other         any                                      the host
//
// Importers read all events as if they were the host's, keep what else an event says as LaneWork,
// and let place_lane_work() turn those on the lanes of a device into device records at the end,
// because names may follow the events.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// The part of an event without a category that a host record cannot hold.
struct LaneWork {
  std::uint32_t host = 0;  ///< Into Trace::hosts.
  std::uint32_t correlation = 0;
  std::uint32_t grid = 0;  ///< As in DeviceRecord.
  std::uint32_t block = 0;
  std::int64_t bytes = 0;
  std::uint64_t graph_node = 0;
  std::int64_t run = 0;    ///< Number that a run of an XLA module and its launch share; 0 if none.
  std::int64_t step = -1;  ///< Number of the step that the event marks; -1 if none.
};

/// A mark at the begin or the end of an arrow from the call that launched something to the work.
struct LaneFlow {
  std::int64_t id = 0;
  std::int64_t time_ns = 0;
  std::int64_t process = 0, thread = 0;  ///< As in Thread.
  bool is_end = false;
};

/// The ordinal in a name such as "/device:GPU:1" or "GPU1"; 0 for a device that is not numbered.
/// Returns nullopt if the name is not that of a device.
std::optional<std::int32_t> device_in_name(std::string_view process);

/// Reads "grid:128,1,1 block:256,1,1" and "size:4096" from the texts of XLA's profiler.
void read_lane_details(std::string_view text, LaneWork& work);

/// Moves the work on the lanes of devices to Trace::devices; leaves out what such lanes repeat, and
/// ops that only contain others. Events of the host with a correlation id or the name of a call
/// become calls, those that mark steps become the profiler's marks. REQUIRES: threads have their
/// names; `work` is sorted by host. `process_name` returns the name of a process, which may be
/// empty.
void place_lane_work(Trace& trace, std::vector<LaneWork>& work, const std::vector<LaneFlow>& flows,
                     const std::function<std::string_view(std::int64_t process)>& process_name);

}  // namespace foretrace
