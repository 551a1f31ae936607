// Reads the allocations and frees of device memory. An allocation from a pool becomes a block; any
// other one is a segment that an allocator in the program gets from the driver.

#include <algorithm>

#include "import/nsys/nsys_readers.h"

namespace foretrace {

namespace {

/// The columns of the query below.
struct MemoryColumn {
  enum : int {
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
};

constexpr std::int64_t kDeallocation = 1;
constexpr std::int64_t kMaxDevices = 0x7fff;

/// Whether `kind` is pageable or pinned memory, by the numbers of the table ENUM_CUDA_MEM_KIND.
bool is_on_host(std::int64_t kind) { return kind == 0 || kind == 1; }

/// Finds the calls that allocate and free memory, sorted by their start.
std::vector<std::uint32_t> find_memory_calls(const Trace& trace) {
  std::vector<std::uint32_t> calls;
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    const HostRecord& record = trace.hosts[i];
    if (!is_call(record.kind)) continue;
    const std::string_view name = trace.names[record.name];
    if (name.find("lloc") != name.npos || name.find("Free") != name.npos)
      calls.push_back(static_cast<std::uint32_t>(i));
  }
  std::stable_sort(calls.begin(), calls.end(), [&](std::uint32_t a, std::uint32_t b) {
    return trace.hosts[a].start_ns < trace.hosts[b].start_ns;
  });
  return calls;
}

/// The thread of a row. Most versions record only its process, so the thread is that of its call.
/// If the row does not name its call, the last memory call that started before it is used.
std::uint16_t thread_of(const SqliteRows& row, NsysTables& tables, const NsysCalls& calls,
                        const std::vector<std::uint32_t>& memory_calls) {
  if (row.has(MemoryColumn::thread_id)) return tables.thread(row, MemoryColumn::thread_id);
  const auto call = calls.find(static_cast<std::uint32_t>(row.integer(MemoryColumn::correlation)));
  if (row.has(MemoryColumn::correlation) && call != calls.end()) return call->second.thread;
  const std::int64_t time = row.integer(MemoryColumn::start);
  const Trace& trace = tables.trace;
  const auto behind =
      std::partition_point(memory_calls.begin(), memory_calls.end(),
                           [&](std::uint32_t i) { return trace.hosts[i].start_ns <= time; });
  if (behind != memory_calls.begin()) return trace.hosts[*std::prev(behind)].thread;
  return trace.threads.empty() ? tables.lanes.thread(tables.process.pid, tables.process.pid)
                               : std::uint16_t{0};
}

}  // namespace

void read_nsys_memory(NsysTables& tables, const NsysCalls& calls) {
  SqliteRows rows(tables.file, "CUDA_GPU_MEMORY_USAGE_EVENTS",
                  {"start", "globalPid", "deviceId", "address", "bytes", "memKind",
                   "memoryOperationType", "correlationId", "streamId", "localMemoryPoolAddress",
                   "localMemoryPoolSize", "localMemoryPoolUtilizedSize", "globalTid"});
  const std::vector<std::uint32_t> memory_calls = find_memory_calls(tables.trace);
  while (rows.next()) {
    NsysTables::Times times;
    if (!tables.is_mine(rows, MemoryColumn::process) ||
        !tables.take_times(rows, MemoryColumn::start, MemoryColumn::start, times))
      continue;
    MemoryRecord record;
    record.time_ns = times.start;
    record.address = static_cast<std::uint64_t>(rows.integer(MemoryColumn::address));
    record.bytes = tables.take_bytes(rows, MemoryColumn::bytes, "memory row ");
    const bool freed = rows.integer(MemoryColumn::operation) == kDeallocation;
    if (freed) record.bytes = -record.bytes;
    const bool from_pool = rows.has(MemoryColumn::pool_address);
    record.action = from_pool ? MemoryAction::block
                    : freed   ? MemoryAction::segment_free
                              : MemoryAction::segment_alloc;
    if (from_pool) {
      record.total_reserved = rows.integer(MemoryColumn::pool_size, -1);
      record.total_allocated = rows.integer(MemoryColumn::pool_used, -1);
    }
    const std::int64_t number = rows.integer(MemoryColumn::device, -1);
    const bool on_device = !(rows.has(MemoryColumn::memory_kind) &&
                             is_on_host(rows.integer(MemoryColumn::memory_kind))) &&
                           number >= 0 && number <= kMaxDevices;
    record.device = static_cast<std::int16_t>(on_device ? number : -1);
    if (on_device && from_pool && rows.has(MemoryColumn::stream_id))
      record.stream = tables.stream(rows, MemoryColumn::device, MemoryColumn::stream_id);
    record.thread = thread_of(rows, tables, calls, memory_calls);
    tables.trace.memory.push_back(record);
  }
}

}  // namespace foretrace
