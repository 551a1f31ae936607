#include "import/spool/spool_records.h"

#include <algorithm>
#include <fmt/core.h>
#include <type_traits>

#include "import/common/cuda_words.h"
#include "import/spool/spool_rows.h"

namespace foretrace {

namespace {

std::string copy_name(const spool::Transfer& row, const CopyKind& kind) {
  return fmt::format("Memcpy {} ({} -> {})", kind.text, memory_kind(row.source_kind),
                     memory_kind(row.destination_kind));
}

std::string_view overhead_name(std::uint32_t kind) {
  constexpr std::string_view kNames[] = {"Unknown",
                                         "Buffer Flush",
                                         "Instrumentation",
                                         "Resource",
                                         "Runtime Triggered Module Loading",
                                         "Lazy Function Loading",
                                         "Command Buffer Full",
                                         "Activity Buffer Request",
                                         "UVM Activity Init"};
  if (kind == 1) return "Driver Compiler";
  const std::uint32_t number = kind >> 16U;
  return kNames[number < std::size(kNames) ? number : 0];
}

}  // namespace

SpoolRecords::SpoolRecords(SpoolIndex& index, std::uint64_t process, Trace& trace,
                           SpoolJoins& joins)
    : ranges(index, trace, joins),
      index_(index),
      process_(process),
      trace_(trace),
      launches_(trace),
      joins_(joins) {
  trace_.devices.reserve(index.rows_of(spool::RowKind::kernel) +
                         index.rows_of(spool::RowKind::shaped_kernel) +
                         index.rows_of(spool::RowKind::transfer));
  trace_.hosts.reserve(
      index.rows_of(spool::RowKind::call) + index.rows_of(spool::RowKind::range_push) +
      index.rows_of(spool::RowKind::range_start) + index.rows_of(spool::RowKind::mark) +
      index.rows_of(spool::RowKind::overhead));
  trace_.memory.reserve(index.rows_of(spool::RowKind::block) +
                        index.rows_of(spool::RowKind::device_memory));
  trace_.syncs.reserve(index.rows_of(spool::RowKind::sync));
}

void SpoolRecords::take(std::string_view body) {
  if (!each_row(body, [&](spool::RowKind kind, const char* row) { take_row(kind, row); }))
    ++odd_rows;
}

void SpoolRecords::take_row(spool::RowKind kind, const char* row) {
  switch (kind) {
    case spool::RowKind::kernel:
      return add_kernel(row_as<spool::Kernel>(row));
    case spool::RowKind::shaped_kernel:
      return add_kernel(row_as<spool::ShapedKernel>(row));
    case spool::RowKind::transfer:
      return add_transfer(row_as<spool::Transfer>(row));
    case spool::RowKind::call:
      return add_call(row_as<spool::Call>(row));
    case spool::RowKind::sync:
      return add_sync(row_as<spool::Sync>(row));
    case spool::RowKind::device_memory:
      return add_device_memory(row_as<spool::DeviceMemory>(row));
    case spool::RowKind::overhead:
      return add_overhead(row_as<spool::Overhead>(row));
    case spool::RowKind::range_push:
    case spool::RowKind::range_start:
    case spool::RowKind::mark:
      return ranges.begin(row_as<spool::Range>(row));
    case spool::RowKind::range_pop:
      return ranges.end_push(row_as<spool::Range>(row));
    case spool::RowKind::range_end:
      return ranges.end_start(row_as<spool::Range>(row));
    case spool::RowKind::graph_edge: {
      const auto edge = row_as<spool::GraphEdge>(row);
      trace_.graph_edges.push_back({edge.before, edge.after});
      return;
    }
    case spool::RowKind::graph_clone:
      joins_.clones.push_back(row_as<spool::GraphClone>(row));
      return;
    case spool::RowKind::block:
      return add_block(row_as<spool::Block>(row));
    case spool::RowKind::thread_name:
      return index_.name_thread(row_as<spool::ThreadName>(row));
    case spool::RowKind::device:
      return add_device(row_as<spool::Device>(row));
    default:
      return;  // SpoolIndex has read it, or a trace has no place for it.
  }
}

SpoolRecords::Times SpoolRecords::times_of(std::uint64_t start, std::uint64_t end) {
  Times times{sound_time(start), sound_time(end) - sound_time(start)};
  if (end < start) {
    ++backwards;
    times.duration = 0;
  }
  last_time_ = std::max(last_time_, times.start + times.duration);
  return times;
}

void SpoolRecords::add_device(const spool::Device& row) {
  // The row of a device is repeated for every context. No machine has more devices than this.
  constexpr std::size_t kMaxDevices = 1024;
  if (row.ordinal >= kMaxDevices) return;
  if (known_devices_.size() <= row.ordinal) known_devices_.resize(std::size_t{row.ordinal} + 1);
  if (known_devices_[row.ordinal]) return;
  known_devices_[row.ordinal] = true;
  trace_.properties.push_back({.ordinal = row.ordinal,
                               .name = std::string(index_.text(row.name)),
                               .memory_bytes = static_cast<std::int64_t>(row.memory_bytes),
                               .multiprocessors = static_cast<std::int32_t>(row.multiprocessors),
                               .major = row.major,
                               .minor = row.minor});
}

template <class Row>
void SpoolRecords::add_kernel(const Row& row) {
  const Times times = times_of(row.start, row.end);
  DeviceRecord record{.start_ns = times.start,
                      .duration_ns = times.duration,
                      .graph_node = row.graph_node,
                      .name = index_.name(row.name),
                      .correlation = row.correlation,
                      .stream = index_.stream(row.device, row.context, row.stream)};
  if constexpr (std::is_same_v<Row, spool::Kernel>) {
    record.grid = row.grid;
    record.block = threads_of_block(row.block);
  } else {
    launches_.set(record, {.grid_x = row.grid_x,
                           .grid_y = row.grid_y,
                           .grid_z = row.grid_z,
                           .block_x = row.block_x,
                           .block_y = row.block_y,
                           .block_z = row.block_z,
                           .registers = row.registers,
                           .static_shared = row.static_shared,
                           .dynamic_shared = row.dynamic_shared});
  }
  trace_.devices.push_back(record);
}

void SpoolRecords::add_transfer(const spool::Transfer& row) {
  const Times times = times_of(row.start, row.end);
  DeviceRecord record{.start_ns = times.start,
                      .duration_ns = times.duration,
                      .bytes = static_cast<std::int64_t>(row.bytes & (~std::uint64_t{0} >> 1U)),
                      .graph_node = row.graph_node,
                      .correlation = row.correlation,
                      .stream = index_.stream(row.device, row.context, row.stream)};
  if (row.copy_kind == 0) {
    record.kind = DeviceKind::fill;
    record.name = index_.intern(fmt::format("Memset ({})", memory_kind(row.destination_kind)));
  } else {
    const CopyKind& kind = copy_kind(row.copy_kind);
    record.kind = DeviceKind::copy;
    record.direction = kind.direction;
    record.name = index_.intern(copy_name(row, kind));
    const bool out = kind.direction == CopyDirection::out;
    record.pinned_host = (out ? row.destination_kind : row.source_kind) == kPinnedMemory;
  }
  trace_.devices.push_back(record);
}

/// Adds a call and finds the driver calls inside it. The calls of a thread come in the order in
/// which they return, so the calls inside a runtime call come right before it.
void SpoolRecords::add_call(const spool::Call& row) {
  const Times times = times_of(row.start, row.end);
  constexpr std::uint16_t kRuntime = 2;
  const bool is_runtime = row.domain == kRuntime;
  const std::uint16_t number = index_.thread(row.thread);
  if (driver_calls_.size() <= number) driver_calls_.resize(std::size_t{number} + 1);
  std::vector<std::uint32_t>& waiting = driver_calls_[number];
  const auto record = static_cast<std::uint32_t>(trace_.hosts.size());
  if (is_runtime) {
    while (!waiting.empty() && trace_.hosts[waiting.back()].start_ns >= times.start) {
      joins_.inner.push_back({waiting.back(), record});
      waiting.pop_back();
    }
    waiting.clear();
  } else {
    waiting.push_back(record);
  }
  trace_.hosts.push_back({.start_ns = times.start,
                          .duration_ns = times.duration,
                          .name = index_.call_name(row.domain, row.callback),
                          .correlation = row.correlation,
                          .thread = number,
                          .kind = is_runtime ? HostKind::runtime : HostKind::driver});
}

void SpoolRecords::add_sync(const spool::Sync& row) {
  constexpr SyncKind kKinds[] = {SyncKind::unknown, SyncKind::event, SyncKind::stream_wait_event,
                                 SyncKind::stream, SyncKind::context};
  constexpr std::uint32_t kNoStream = 0xffffffff;
  const Times times = times_of(row.start, row.end);
  SyncRecord record{.start_ns = times.start,
                    .duration_ns = times.duration,
                    .correlation = row.correlation,
                    .event = row.event,
                    .kind = kKinds[row.type < std::size(kKinds) ? row.type : 0]};
  const bool has_stream = row.stream != kNoStream && (record.kind == SyncKind::stream ||
                                                      record.kind == SyncKind::stream_wait_event);
  if (has_stream) record.stream = index_.stream(row.context, row.stream);
  if (record.kind == SyncKind::event || record.kind == SyncKind::stream_wait_event)
    joins_.waits.push_back({row, static_cast<std::uint32_t>(trace_.syncs.size())});
  trace_.syncs.push_back(record);
}

void SpoolRecords::add_device_memory(const spool::DeviceMemory& row) {
  const Times times = times_of(row.time, row.time);
  const bool on_device = row.memory_kind == kDeviceMemory || row.memory_kind == kDeviceStaticMemory;
  std::int64_t bytes = static_cast<std::int64_t>(row.bytes & (~std::uint64_t{0} >> 1U));
  const bool is_release = row.is_release != 0;
  if (is_release) {
    const auto known = device_blocks_.find(row.address);
    if (known != device_blocks_.end()) {
      bytes = known->second;
      device_blocks_.erase(known);
    }
  } else {
    device_blocks_[row.address] = bytes;
  }
  MemoryRecord record{.time_ns = times.start,
                      .address = row.address,
                      .bytes = is_release ? -bytes : bytes,
                      .device = static_cast<std::int16_t>(on_device ? row.device : -1)};
  // An allocation from a pool is a block. The others are segments, which an allocator in the
  // program gets from cudaMalloc.
  if (row.is_async == 0)
    record.action = is_release ? MemoryAction::segment_free : MemoryAction::segment_alloc;
  if (row.is_async != 0 && on_device)
    record.stream = index_.stream(row.device, row.context, row.stream);
  record.thread = index_.thread(static_cast<std::uint32_t>(process_));
  trace_.memory.push_back(record);
}

void SpoolRecords::add_overhead(const spool::Overhead& row) {
  const Times times = times_of(row.start, row.end);
  trace_.hosts.push_back({.start_ns = times.start,
                          .duration_ns = times.duration,
                          .name = index_.intern(overhead_name(row.kind)),
                          .correlation = 0,
                          .thread = index_.thread(row.thread),
                          .kind = HostKind::overhead});
}

void SpoolRecords::add_block(const spool::Block& row) {
  const std::int64_t time = index_.on_device_clock(row.time);
  last_time_ = std::max(last_time_, time);
  trace_.memory.push_back({.time_ns = time,
                           .address = row.address,
                           .bytes = row.bytes,
                           .total_allocated = row.total_allocated,
                           .total_reserved = row.total_reserved,
                           .thread = index_.thread(row.thread),
                           .device = row.device});
}

}  // namespace foretrace
