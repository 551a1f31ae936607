#pragma once

// The contents of a trace, counted once: `info` shows it and `doctor` judges it.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

struct Census {
  /// First start to last finish of host and device records (in a snapshot, memory events as well);
  /// 0 for a trace without times.
  std::int64_t window_ns = 0;
  std::int64_t first_ns = 0;

  std::int64_t ops = 0, annotations = 0, frames = 0, calls = 0, overheads = 0;
  std::int64_t kernels = 0, copies = 0, fills = 0;
  std::int64_t overhead_ns = 0;     ///< Sum over the profiler's own work, without its waits.
  std::int64_t device_time_ns = 0;  ///< Sum over kernels, copies and fills.
  std::int64_t device_busy_ns = 0;  ///< At least one kernel, copy or fill runs, over all devices.

  std::int64_t orphans = 0;   ///< Device records without a recorded call of their correlation id.
  std::int64_t launches = 0;  ///< Calls that must have launched device work.
  std::int64_t lost = 0;      ///< Launches without a device record.
  std::int64_t early = 0;     ///< Device records that start before their call.
  std::int64_t earliest_ns = 0;    ///< Greatest lead of such a record.
  std::int64_t instant = 0;        ///< Kernels with a duration of 0.
  std::int64_t event_waits = 0;    ///< cudaStreamWaitEvent and the like.
  std::int64_t waiting_calls = 0;  ///< Calls that synchronize host and device.
  std::int64_t waiting_ns = 0;     ///< Sum over these, on all threads.
  std::int64_t used_streams = 0;

  /// Durations of the step markers, in order of time; 0 in a trace without times.
  std::vector<std::int64_t> steps_ns;
  bool shapes = false, module_names = false;
  std::int64_t collectives = 0, described_collectives = 0;
  std::int64_t tensors_read = 0, tensors_written = 0;  ///< Counted each time an op does so.
  std::int64_t bytes_read = 0, bytes_written = 0;      ///< Bytes of those tensors.
  std::int64_t storages = 0;                           ///< Number of distinct storages.
  std::int64_t addressed = 0, totalled = 0;  ///< Memory events with an address, with a total.
};

Census take_census(const Trace& trace);

struct RankFacts;
struct StepTimes;
class Document;

/// Describes the content of a trace. `steps`: as infer() finds them; nullptr if unknown. `among`:
/// the rank among others; nullptr if it meets none. `top`: how many kinds of work are listed.
nlohmann::json describe_trace(const Trace& trace, const StepTimes* steps = nullptr,
                              const RankFacts* among = nullptr, std::size_t top = 10);
/// Adds the same, for people.
void add_info(const Trace& trace, const StepTimes* steps, const RankFacts* among,
              Document& document, std::size_t top = 10);

}  // namespace foretrace
