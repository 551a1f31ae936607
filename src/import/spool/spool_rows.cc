// Rows of a spool as records.

#include "import/spool/spool_rows.h"

#include <algorithm>

#include "import/common/cuda_words.h"
#include "import/common/nvtx_op.h"
#include "import/spool/spool.h"

namespace foretrace {

namespace {

std::string copy_name(const spool::Transfer& row, const CopyKind& kind) {
  return "Memcpy " + std::string(kind.text) + " (" + std::string(memory_kind(row.source_kind)) +
         " -> " + std::string(memory_kind(row.destination_kind)) + ")";
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

void SpoolReader::take(std::string_view body) {
  if (!each_row(body, [&](spool::RowKind kind, const char* row) { take_row(kind, row); }))
    ++odd_rows_;
}

void SpoolReader::take_row(spool::RowKind kind, const char* row) {
  switch (kind) {
    case spool::RowKind::kernel:
      return add_kernel(row_as<spool::Kernel>(row));
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
      return begin_range(row_as<spool::Range>(row));
    case spool::RowKind::range_pop:
      return end_push(row_as<spool::Range>(row));
    case spool::RowKind::range_end:
      return end_start(row_as<spool::Range>(row));
    case spool::RowKind::graph_edge: {
      const auto edge = row_as<spool::GraphEdge>(row);
      trace_.graph_edges.push_back({edge.before, edge.after});
      return;
    }
    case spool::RowKind::graph_clone:
      clones_.push_back(row_as<spool::GraphClone>(row));
      return;
    case spool::RowKind::block:
      return add_block(row_as<spool::Block>(row));
    case spool::RowKind::thread_name: {
      const auto named = row_as<spool::ThreadName>(row);
      if (named.is_given == 0 && named_by_program_.contains(named.thread)) return;
      if (named.is_given != 0) named_by_program_.insert(named.thread);
      if (named.name < texts_.size())
        lanes_.name_thread(static_cast<std::int64_t>(file_.header().process), named.thread,
                           texts_[named.name]);
      return;
    }
    case spool::RowKind::device:
      return add_device(row_as<spool::Device>(row));
    default:
      return;  // Known already, or of no use to a trace.
  }
}

SpoolReader::Times SpoolReader::device_times(std::uint64_t start, std::uint64_t end) {
  Times times{sound_time(start), sound_time(end) - sound_time(start)};
  if (end < start) {
    ++backwards_;
    times.duration = 0;
  }
  last_time_ = std::max(last_time_, times.start + times.duration);
  return times;
}

void SpoolReader::add_device(const spool::Device& row) {
  const std::string_view name = row.name < texts_.size() ? texts_[row.name] : std::string_view();
  // Told again for every context. No machine has more devices than this.
  constexpr std::size_t kMostDevices = 1024;
  if (row.ordinal >= kMostDevices) return;
  if (known_devices_.size() <= row.ordinal) known_devices_.resize(std::size_t{row.ordinal} + 1);
  if (known_devices_[row.ordinal]) return;
  known_devices_[row.ordinal] = true;
  trace_.properties.push_back({.ordinal = row.ordinal,
                               .name = std::string(name),
                               .memory_bytes = static_cast<std::int64_t>(row.memory_bytes),
                               .multiprocessors = static_cast<std::int32_t>(row.multiprocessors),
                               .major = row.major,
                               .minor = row.minor});
}

void SpoolReader::add_kernel(const spool::Kernel& row) {
  const Times times = device_times(row.start, row.end);
  trace_.devices.push_back({.start_ns = times.start,
                            .duration_ns = times.duration,
                            .graph_node = row.graph_node,
                            .name = name(row.name),
                            .correlation = row.correlation,
                            .grid = row.grid,
                            .block = row.block,
                            .stream = stream(row.device, row.context, row.stream)});
}

void SpoolReader::add_transfer(const spool::Transfer& row) {
  const Times times = device_times(row.start, row.end);
  DeviceRecord record{.start_ns = times.start,
                      .duration_ns = times.duration,
                      .bytes = static_cast<std::int64_t>(row.bytes & (~std::uint64_t{0} >> 1U)),
                      .graph_node = row.graph_node,
                      .correlation = row.correlation,
                      .stream = stream(row.device, row.context, row.stream)};
  if (row.copy_kind == 0) {
    record.kind = DeviceKind::fill;
    record.name = intern_.intern("Memset (" + std::string(memory_kind(row.destination_kind)) + ")");
  } else {
    const CopyKind& kind = copy_kind(row.copy_kind);
    record.kind = DeviceKind::copy;
    record.direction = kind.direction;
    record.name = intern_.intern(copy_name(row, kind));
    const bool out = kind.direction == CopyDirection::out;
    record.pinned_host = (out ? row.destination_kind : row.source_kind) == kPinnedMemory;
  }
  trace_.devices.push_back(record);
}

/// Calls of a thread come in the order in which they return, so that those inside a runtime call
/// come right before it.
void SpoolReader::add_call(const spool::Call& row) {
  const Times times = device_times(row.start, row.end);
  constexpr std::uint16_t kRuntime = 2;
  const bool is_runtime = row.domain == kRuntime;
  const std::uint16_t number = thread(row.thread);
  if (threads_.size() <= number) threads_.resize(std::size_t{number} + 1);
  std::vector<std::uint32_t>& waiting = threads_[number].driver_calls;
  const auto record = static_cast<std::uint32_t>(trace_.hosts.size());
  if (is_runtime) {
    while (!waiting.empty() && trace_.hosts[waiting.back()].start_ns >= times.start) {
      inner_.push_back({waiting.back(), record});
      waiting.pop_back();
    }
    waiting.clear();
  } else {
    waiting.push_back(record);
  }
  trace_.hosts.push_back({.start_ns = times.start,
                          .duration_ns = times.duration,
                          .name = call_name(row.domain, row.callback),
                          .correlation = row.correlation,
                          .thread = number,
                          .kind = is_runtime ? HostKind::runtime : HostKind::driver});
}

void SpoolReader::add_sync(const spool::Sync& row) {
  constexpr SyncKind kKinds[] = {SyncKind::unknown, SyncKind::event, SyncKind::stream_wait_event,
                                 SyncKind::stream, SyncKind::context};
  constexpr std::uint32_t kNoStream = 0xffffffff;
  const Times times = device_times(row.start, row.end);
  SyncRecord record{.start_ns = times.start,
                    .duration_ns = times.duration,
                    .correlation = row.correlation,
                    .event = row.event,
                    .kind = kKinds[row.type < std::size(kKinds) ? row.type : 0]};
  const bool has_stream = row.stream != kNoStream && (record.kind == SyncKind::stream ||
                                                      record.kind == SyncKind::stream_wait_event);
  const auto device = device_of_context_.find(row.context);
  const std::uint32_t ordinal = device == device_of_context_.end() ? 0 : device->second;
  if (has_stream) record.stream = stream(ordinal, row.context, row.stream);
  if (record.kind == SyncKind::event || record.kind == SyncKind::stream_wait_event) {
    waits_.push_back(row);
    wait_records_.push_back(static_cast<std::uint32_t>(trace_.syncs.size()));
  }
  trace_.syncs.push_back(record);
}

void SpoolReader::add_device_memory(const spool::DeviceMemory& row) {
  const Times times = device_times(row.time, row.time);
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
  // An allocation from a pool is a block; cudaMalloc is called by an allocator of the program.
  if (row.is_async == 0)
    record.action = is_release ? MemoryAction::segment_free : MemoryAction::segment_alloc;
  if (row.is_async != 0 && on_device) record.stream = stream(row.device, row.context, row.stream);
  record.thread = thread(static_cast<std::uint32_t>(file_.header().process));
  trace_.memory.push_back(record);
}

void SpoolReader::add_overhead(const spool::Overhead& row) {
  const Times times = device_times(row.start, row.end);
  trace_.hosts.push_back({.start_ns = times.start,
                          .duration_ns = times.duration,
                          .name = intern_.intern(overhead_name(row.kind)),
                          .correlation = 0,
                          .thread = thread(row.thread),
                          .kind = HostKind::overhead});
}

std::uint32_t SpoolReader::add_range(const spool::Range& row) {
  HostRecord record{.start_ns = on_device_clock(row.time),
                    .thread = thread(row.thread),
                    .kind = HostKind::annotation};
  last_time_ = std::max(last_time_, record.start_ns);
  const std::string_view text = row.name < texts_.size() ? texts_[row.name] : std::string_view();
  const std::string_view payload =
      row.payload < texts_.size() ? texts_[row.payload] : std::string_view();
  OpDetails details;
  bool has_details = !payload.empty();
  if (row.domain != 0 && row.domain < texts_.size()) {
    record.name = intern_.intern(std::string(texts_[row.domain]) + ":" + std::string(text));
  } else if (const auto op = parse_nvtx_op(text)) {
    record.kind = HostKind::op;
    record.name = intern_.intern(op->name);
    details.shapes = intern_.intern(op->sizes);
    details.sequence = op->sequence;
    details.record_function = op->record_function;
    has_details |= op->sequence >= 0 || op->record_function >= 0 || !op->sizes.empty();
  } else {
    record.name = name(row.name);
  }
  if (has_details) {
    details.values = intern_.intern(payload);
    record.details = static_cast<std::uint32_t>(trace_.op_details.size());
    trace_.op_details.push_back(details);
  }
  trace_.hosts.push_back(record);
  return static_cast<std::uint32_t>(trace_.hosts.size() - 1);
}

void SpoolReader::begin_range(const spool::Range& row) {
  const std::uint32_t record = add_range(row);
  if (row.row == spool::RowKind::range_push) {
    const std::uint16_t number = trace_.hosts[record].thread;
    if (threads_.size() <= number) threads_.resize(std::size_t{number} + 1);
    threads_[number].ranges.push_back({record, row.domain});
  } else if (row.row == spool::RowKind::range_start) {
    const auto ended = early_ends_.find(row.id);
    if (ended == early_ends_.end()) {
      started_[row.id] = record;
    } else {
      end_record(record, ended->second);
      early_ends_.erase(ended);
    }
  }
  const std::string_view domain =
      row.domain < texts_.size() ? texts_[row.domain] : std::string_view();
  if (domain == "NCCL" && row.payload != 0 && row.payload < texts_.size())
    collectives_.push_back({trace_.hosts[record].start_ns, record, row.payload});
}

/// Ends the youngest open range of its domain; domains do not nest in each other.
void SpoolReader::end_push(const spool::Range& row) {
  const std::uint16_t number = thread(row.thread);
  if (threads_.size() <= number) threads_.resize(std::size_t{number} + 1);
  std::vector<OpenRange>& open = threads_[number].ranges;
  const auto found = std::find_if(open.rbegin(), open.rend(), [&](const OpenRange& range) {
    return range.domain == row.domain;
  });
  if (found == open.rend()) {
    ++stray_ends_;
    return;
  }
  end_record(found->record, row.time);
  open.erase(std::next(found).base());
}

void SpoolReader::end_start(const spool::Range& row) {
  const auto found = started_.find(row.id);
  if (found == started_.end()) {
    // Threads write their events one after the other: the start may still come.
    early_ends_[row.id] = row.time;
    return;
  }
  end_record(found->second, row.time);
  started_.erase(found);
}

void SpoolReader::end_record(std::uint32_t record, std::uint64_t time) {
  HostRecord& range = trace_.hosts[record];
  const std::int64_t end = on_device_clock(time);
  last_time_ = std::max(last_time_, end);
  range.duration_ns = std::max<std::int64_t>(0, end - range.start_ns);
}

void SpoolReader::add_block(const spool::Block& row) {
  const std::int64_t time = on_device_clock(row.time);
  last_time_ = std::max(last_time_, time);
  trace_.memory.push_back({.time_ns = time,
                           .address = row.address,
                           .bytes = row.bytes,
                           .total_allocated = row.total_allocated,
                           .total_reserved = row.total_reserved,
                           .thread = thread(row.thread),
                           .device = row.device});
}

}  // namespace foretrace
