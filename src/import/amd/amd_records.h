#pragma once

// Builds a trace from the files of AMD's profilers. All of them contain the same kinds of records:
// dispatches of kernels, copies, calls of HIP and HSA, ranges of roctx, allocations. This part,
// which their readers share, numbers threads, streams and devices, and makes times relative at the
// end.

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "foretrace/trace.h"
#include "import/common/launch_shapes.h"

namespace foretrace {

/// An interval on the profiler's clock, in nanoseconds.
struct AmdTimes {
  std::int64_t start = 0, end = 0;
};

struct AmdAgent {
  bool is_gpu = false;
  std::int32_t ordinal = -1;  ///< The index among GPUs; -1 for a CPU.
};

/// The kind of the calls in a domain, by words that AMD's tools use in the names of domains.
HostKind kind_of_domain(std::string_view domain);

class AmdRecords {
 public:
  explicit AmdRecords(Trace& trace) : launches(trace), trace_(trace) {}

  std::uint16_t thread(std::int64_t process, std::int64_t id);
  std::uint16_t stream(std::int32_t device, std::int64_t id);

  /// Adds an agent. Records refer to it by `number`. GPUs get ordinals in the order in which they
  /// are added.
  void add_agent(std::int64_t number, bool is_gpu, Device device);
  AmdAgent agent(std::int64_t number) const;

  /// Add a record. If its times are impossible, they count it, add nothing and return false.
  bool add_device(DeviceRecord record, AmdTimes times);
  bool add_host(HostRecord record, AmdTimes times);

  /// add_free() takes the size from the allocation at the same address. `bytes` counts only if that
  /// allocation was not recorded; 0 if unknown.
  void add_allocation(MemoryRecord record, std::int64_t time);
  void add_free(MemoryRecord record, std::int64_t time);

  /// The direction of a copy between these agents, and the ordinal of the GPU whose stream runs it.
  CopyDirection direction(std::int64_t from, std::int64_t to) const;
  std::int32_t device_of_copy(std::int64_t from, std::int64_t to) const;

  /// Makes times relative to the first one and adds notes about odd records. Throws TraceError if
  /// there is no record.
  void finish();

  LaunchShapes launches;

 private:
  bool are_possible(AmdTimes times);

  Trace& trace_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint16_t> threads_, streams_;
  std::unordered_map<std::int64_t, AmdAgent> agents_;
  std::unordered_map<std::uint64_t, MemoryRecord> live_;
  std::int64_t bad_times_ = 0, too_many_lanes_ = 0, unknown_frees_ = 0;
  std::int32_t next_ordinal_ = 0;
};

}  // namespace foretrace
