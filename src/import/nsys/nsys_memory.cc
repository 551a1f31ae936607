// Device memory that the program allocated and freed. An allocation from a pool is a block of it;
// any other is what an allocator of the program gets from the driver.

#include <algorithm>

#include "import/nsys/nsys_file.h"

namespace foretrace {

namespace {

enum Column {
  start,
  process,
  device,
  address,
  bytes,
  memory_kind,
  operation,
  correlation,
  stream_id,
  pool_address,
  pool_size,
  pool_used,
  thread_id
};

constexpr std::int64_t kDeallocation = 1;
constexpr std::int64_t kMostDevices = 0x7fff;

/// As in the table ENUM_CUDA_MEM_KIND: pageable and pinned memory.
bool is_on_host(std::int64_t kind) { return kind == 0 || kind == 1; }

}  // namespace

/// Finds the calls that allocate and free memory, by their start.
void NsysReport::find_memory_calls() {
  for (std::size_t i = 0; i < trace_.hosts.size(); ++i) {
    const HostRecord& record = trace_.hosts[i];
    if (record.kind != HostKind::runtime && record.kind != HostKind::driver) continue;
    const std::string_view name = trace_.names[record.name];
    if (name.find("lloc") != name.npos || name.find("Free") != name.npos)
      memory_calls_.push_back(static_cast<std::uint32_t>(i));
  }
  std::stable_sort(memory_calls_.begin(), memory_calls_.end(),
                   [&](std::uint32_t a, std::uint32_t b) {
                     return trace_.hosts[a].start_ns < trace_.hosts[b].start_ns;
                   });
}

/// Rows name only their process; their call names the thread. In versions that do not name the
/// call, the call running at that time is used.
std::uint16_t NsysReport::thread_of_memory(const SqliteRows& row) {
  if (row.has(thread_id)) return thread(row, thread_id);
  const auto call = calls_.find(static_cast<std::uint32_t>(row.integer(correlation)));
  if (row.has(correlation) && call != calls_.end()) return call->second.thread;
  const std::int64_t time = row.integer(start);
  const auto behind =
      std::partition_point(memory_calls_.begin(), memory_calls_.end(),
                           [&](std::uint32_t i) { return trace_.hosts[i].start_ns <= time; });
  if (behind != memory_calls_.begin()) return trace_.hosts[*std::prev(behind)].thread;
  return trace_.threads.empty() ? lanes_.thread(process_.pid, process_.pid) : std::uint16_t{0};
}

void NsysReport::read_memory() {
  SqliteRows rows(file_, "CUDA_GPU_MEMORY_USAGE_EVENTS",
                  {"start", "globalPid", "deviceId", "address", "bytes", "memKind",
                   "memoryOperationType", "correlationId", "streamId", "localMemoryPoolAddress",
                   "localMemoryPoolSize", "localMemoryPoolUtilizedSize", "globalTid"});
  find_memory_calls();
  while (rows.next()) {
    Times times;
    if (!is_mine(rows, process) || !take_times(rows, start, start, times)) continue;
    MemoryRecord record;
    record.time_ns = times.start;
    record.address = static_cast<std::uint64_t>(rows.integer(address));
    record.bytes = take_bytes(rows, bytes, "memory row ");
    const bool freed = rows.integer(operation) == kDeallocation;
    if (freed) record.bytes = -record.bytes;
    const bool from_pool = rows.has(pool_address);
    record.action = from_pool ? MemoryAction::block
                    : freed   ? MemoryAction::segment_free
                              : MemoryAction::segment_alloc;
    if (from_pool) {
      record.total_reserved = rows.integer(pool_size, -1);
      record.total_allocated = rows.integer(pool_used, -1);
    }
    const std::int64_t number = rows.integer(device, -1);
    const bool on_device = !(rows.has(memory_kind) && is_on_host(rows.integer(memory_kind))) &&
                           number >= 0 && number <= kMostDevices;
    record.device = static_cast<std::int16_t>(on_device ? number : -1);
    if (on_device && from_pool && rows.has(stream_id))
      record.stream = stream(rows, device, stream_id);
    record.thread = thread_of_memory(rows);
    trace_.memory.push_back(record);
  }
}

}  // namespace foretrace
