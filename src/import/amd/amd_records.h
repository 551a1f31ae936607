#pragma once

// Records of AMD's profilers, from any of their files: this numbers threads, streams and devices,
// and makes times relative at the end. All of their files contain the same: dispatches of kernels,
// copies, calls of HIP and HSA, ranges of roctx, allocations.

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "foretrace/trace.h"

namespace foretrace {

/// From start to end, on the profiler's clock.
struct AmdTimes {
  std::int64_t start = 0, end = 0;
};

struct AmdAgent {
  bool is_gpu = false;
  std::int32_t ordinal = -1;  ///< The index among GPUs; -1 for a CPU.
};

/// The kind of call in a domain: the names that AMD's tools give to their domains begin with these
/// words.
HostKind kind_of_domain(std::string_view domain);

class AmdRecords {
 public:
  explicit AmdRecords(Trace& trace) : trace_(trace) {}

  std::uint16_t thread(std::int64_t process, std::int64_t id);
  std::uint16_t stream(std::int32_t device, std::int64_t id);

  /// Adds an agent by the number that records refer to it with. GPUs get ordinals in the order of
  /// their calls.
  void add_agent(std::int64_t number, bool is_gpu, Device device);
  AmdAgent agent(std::int64_t number) const;

  /// Each adds a record and returns whether its times are possible.
  bool add_device(DeviceRecord record, AmdTimes times);
  bool add_host(HostRecord record, AmdTimes times);

  /// `bytes` is 0 for a free: the size is that of the allocation at this address.
  void add_allocation(MemoryRecord record, std::int64_t time);
  void add_free(MemoryRecord record, std::int64_t time);

  /// The direction of a copy between these agents, and the agent whose stream it is on.
  CopyDirection direction(std::int64_t from, std::int64_t to) const;
  std::int32_t device_of_copy(std::int64_t from, std::int64_t to) const;

  /// Makes times relative to the first one, and notes oddities. Throws TraceError if there is no
  /// record.
  void finish();

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
