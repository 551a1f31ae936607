#include "collect/cupti/decode.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "trace/spool.h"

namespace foretrace::collect {

namespace {

/// Whether a record of `size` bytes contains this member; records of older versions are shorter.
#define FORETRACE_HAS(Record, member, size) \
  ((size) >= offsetof(cupti::Record, member) + sizeof(cupti::Record::member))

std::uint16_t to_16(std::uint32_t value) {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(value, std::numeric_limits<std::uint16_t>::max()));
}

/// CUPTI declares sizes as signed numbers.
std::uint32_t to_32(std::int32_t size) { return static_cast<std::uint32_t>(std::max(size, 0)); }

template <class Row>
Decoded put(const Row& row, char* to) {
  static_assert(sizeof row <= kMaxRowBytes);
  std::memcpy(to, &row, sizeof row);
  return {.bytes = sizeof row};
}

/// Whether CUPTI had no room for the times of this record, and left one of them 0.
template <class Record>
bool is_untimed(const Record& record) {
  return record.start == 0 || record.end == 0;
}

Decoded decode_kernel(const cupti::Kernel& record, std::size_t size, Texts& texts, char* to) {
  if (is_untimed(record)) return {.is_untimed = true};
  spool::ShapedKernel row;
  row.device = to_16(record.device);
  row.correlation = record.correlation;
  row.start = record.start;
  row.end = record.end;
  row.name = texts.number_at(record.name);
  row.context = record.context;
  row.stream = record.stream;
  row.grid_x = to_32(record.grid[0]);
  row.grid_y = to_16(to_32(record.grid[1]));
  row.grid_z = to_16(to_32(record.grid[2]));
  row.block_x = to_16(to_32(record.block[0]));
  row.block_y = to_16(to_32(record.block[1]));
  row.block_z = to_16(to_32(record.block[2]));
  row.registers = record.registers_per_thread;
  row.static_shared = to_32(record.static_shared_memory);
  row.dynamic_shared = to_32(record.dynamic_shared_memory);
  if (FORETRACE_HAS(Kernel, graph_node, size)) row.graph_node = record.graph_node;
  if (FORETRACE_HAS(Kernel, graph, size)) row.graph = record.graph;
  return put(row, to);
}

template <class Record>
spool::Transfer transfer_of(const Record& record) {
  spool::Transfer row;
  row.device = to_16(record.device);
  row.correlation = record.correlation;
  row.start = record.start;
  row.end = record.end;
  row.bytes = record.bytes;
  row.context = record.context;
  row.stream = record.stream;
  row.is_async = static_cast<std::uint8_t>(record.flags & 1U);
  return row;
}

Decoded decode_copy(const cupti::Memcpy& record, std::size_t size, char* to) {
  if (is_untimed(record)) return {.is_untimed = true};
  spool::Transfer row = transfer_of(record);
  row.copy_kind = record.copy_kind;
  row.source_kind = record.source_kind;
  row.destination_kind = record.destination_kind;
  if (FORETRACE_HAS(Memcpy, graph_node, size)) row.graph_node = record.graph_node;
  return put(row, to);
}

Decoded decode_peer_copy(const cupti::MemcpyPeer& record, std::size_t size, char* to) {
  if (is_untimed(record)) return {.is_untimed = true};
  spool::Transfer row = transfer_of(record);
  row.copy_kind = record.copy_kind;
  row.source_kind = record.source_kind;
  row.destination_kind = record.destination_kind;
  row.source_device = to_16(record.source_device);
  row.destination_device = to_16(record.destination_device);
  if (FORETRACE_HAS(MemcpyPeer, graph_node, size)) row.graph_node = record.graph_node;
  return put(row, to);
}

Decoded decode_fill(const cupti::Memset& record, std::size_t size, char* to) {
  if (is_untimed(record)) return {.is_untimed = true};
  spool::Transfer row = transfer_of(record);
  row.destination_kind = static_cast<std::uint8_t>(record.memory_kind);
  if (FORETRACE_HAS(Memset, graph_node, size)) row.graph_node = record.graph_node;
  return put(row, to);
}

Decoded decode_call(const cupti::Api& record, char* to) {
  spool::Call row;
  row.domain = static_cast<std::uint16_t>(
      record.kind == cupti::Kind::runtime ? cupti::Domain::runtime : cupti::Domain::driver);
  row.correlation = record.correlation;
  row.start = record.start;
  row.end = record.end;
  row.callback = record.callback;
  row.thread = record.thread;
  return put(row, to);
}

Decoded decode_sync(const cupti::Synchronization& record, std::size_t size, char* to) {
  spool::Sync row;
  row.type = to_16(record.type);
  row.correlation = record.correlation;
  row.start = record.start;
  row.end = record.end;
  row.context = record.context;
  row.stream = record.stream;
  row.event = record.event;
  if (FORETRACE_HAS(Synchronization, event_sync_id, size)) row.sync_id = record.event_sync_id;
  return put(row, to);
}

Decoded decode_event(const cupti::CudaEvent& record, std::size_t size, char* to) {
  spool::Event row;
  row.correlation = record.correlation;
  row.context = record.context;
  row.stream = record.stream;
  row.event = record.event;
  if (FORETRACE_HAS(CudaEvent, event_sync_id, size)) {
    row.device_time = record.device_timestamp;
    row.sync_id = record.event_sync_id;
  }
  return put(row, to);
}

Decoded decode_memory(const cupti::Memory& record, std::size_t size, Texts& texts, char* to) {
  spool::DeviceMemory row;
  row.device = to_16(record.device);
  row.correlation = record.correlation;
  row.time = record.timestamp;
  row.address = record.address;
  row.bytes = record.bytes;
  row.context = record.context;
  row.stream = record.stream;
  row.is_release = record.operation == 2 ? 1 : 0;
  row.memory_kind = static_cast<std::uint8_t>(std::min(record.memory_kind, 255U));
  if (FORETRACE_HAS(Memory, is_async, size)) {
    row.is_async = record.is_async != 0 ? 1 : 0;
    row.source = texts.number_at(record.name);
  }
  return put(row, to);
}

Decoded decode_pool(const cupti::MemoryPool& record, std::size_t size, char* to) {
  spool::MemoryPool row;
  row.device = to_16(record.device);
  row.operation = record.operation;
  row.time = record.timestamp;
  row.address = record.address;
  row.size = record.size;
  if (FORETRACE_HAS(MemoryPool, utilized, size)) row.utilized = record.utilized;
  return put(row, to);
}

Decoded decode_overhead(const cupti::Overhead& record, std::size_t size, char* to) {
  constexpr std::uint32_t kThread = 2;
  spool::Overhead row;
  row.kind = record.overhead_kind;
  row.start = record.start;
  row.end = record.end;
  if (record.object_kind == kThread) row.thread = record.object[1];
  if (FORETRACE_HAS(Overhead, correlation, size)) row.correlation = record.correlation;
  Decoded decoded = put(row, to);
  if (FORETRACE_HAS(Overhead, details, size)) decoded.owned_details = record.details;
  return decoded;
}

Decoded decode_device(const cupti::Device& record, Texts& texts, char* to) {
  spool::Device row;
  row.ordinal = to_16(record.ordinal);
  row.name = texts.number_at(record.name);
  row.memory_bytes = record.memory_bytes;
  row.memory_bandwidth = record.memory_bandwidth * 1000;
  row.multiprocessors = record.multiprocessors;
  row.core_clock_khz = record.core_clock_khz;
  row.major = to_16(record.major);
  row.minor = to_16(record.minor);
  row.l2_bytes = record.l2_bytes;
  return put(row, to);
}

Decoded decode_context(const cupti::Context& record, char* to) {
  spool::Context row;
  row.device = to_16(record.device);
  row.context = record.context;
  row.null_stream = record.null_stream;
  return put(row, to);
}

Decoded decode_stream(const cupti::Stream& record, char* to) {
  spool::Stream row;
  row.flag = static_cast<std::uint16_t>(record.flag & 0xffffU);
  row.context = record.context;
  row.stream = record.stream;
  row.priority = static_cast<std::int32_t>(record.priority);
  return put(row, to);
}

template <class Record>
const Record& view(const cupti::Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

}  // namespace

Decoded decode(const cupti::Activity& record, std::size_t size, Texts& texts, char* row) {
  switch (record.kind) {
    case cupti::Kind::concurrent_kernel:
      return decode_kernel(view<cupti::Kernel>(record), size, texts, row);
    case cupti::Kind::memcpy:
      return decode_copy(view<cupti::Memcpy>(record), size, row);
    case cupti::Kind::memcpy_peer:
      return decode_peer_copy(view<cupti::MemcpyPeer>(record), size, row);
    case cupti::Kind::memset:
      return decode_fill(view<cupti::Memset>(record), size, row);
    case cupti::Kind::runtime:
    case cupti::Kind::driver:
    case cupti::Kind::internal_launch_api:
      return decode_call(view<cupti::Api>(record), row);
    case cupti::Kind::synchronization:
      return decode_sync(view<cupti::Synchronization>(record), size, row);
    case cupti::Kind::cuda_event:
      return decode_event(view<cupti::CudaEvent>(record), size, row);
    case cupti::Kind::memory:
      return decode_memory(view<cupti::Memory>(record), size, texts, row);
    case cupti::Kind::memory_pool:
      return decode_pool(view<cupti::MemoryPool>(record), size, row);
    case cupti::Kind::overhead:
      return decode_overhead(view<cupti::Overhead>(record), size, row);
    case cupti::Kind::device:
      return decode_device(view<cupti::Device>(record), texts, row);
    case cupti::Kind::context:
      return decode_context(view<cupti::Context>(record), row);
    case cupti::Kind::stream:
      return decode_stream(view<cupti::Stream>(record), row);
    case cupti::Kind::name:
      return {};
  }
  return {.is_unknown = true};
}

}  // namespace foretrace::collect
