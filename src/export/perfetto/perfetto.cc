// Writes a trace as Perfetto's TrackEvents. Perfetto's viewer opens them faster than JSON, and they
// have what JSON lacks: times in nanoseconds, units of counters, and rows for overlapping slices.
//
//     process         threads       ops, ranges, frames and calls
//     GPU 0           stream 7      kernels, copies and fills; ranges and waits beside them
//                     memory        allocated and reserved bytes, as counters
//     flows           from calls to the work they launched, from forward ops to their backward,
//     from
//                     ranks that wait in a collective to the rank that enters last
//
// The arguments of a slice contain all fields of its record, under the names of PyTorch's profiler,
// so that reading the file back gives the records again.

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "export/common/profiler_words.h"
#include "export/common/registered.h"
#include "export/perfetto/perfetto_packets.h"
#include "export/perfetto/perfetto_rows.h"
#include "foretrace/error.h"
#include "foretrace/trace.h"
#include "trace/launch_shape.h"

namespace foretrace {
namespace {

// Writes the content of the slices of a Perfetto trace: the names, categories and arguments of
// their records.

/// Name and category of the event that describes the file itself.
inline constexpr std::string_view kPerfettoHead = "foretrace";

void add_unless(std::int64_t absent, std::string_view key, std::int64_t value,
                PerfettoPackets& out) {
  if (value != absent) out.argument(key, value);
}

void add_text(const Trace& trace, std::string_view key, NameId text, PerfettoPackets& out) {
  if (text != NameId{}) out.argument(key, trace.names[text]);
}

void add_stream(const Trace& trace, std::string_view key, std::uint32_t stream,
                PerfettoPackets& out) {
  if (stream != kNone) out.argument(key, trace.streams[stream].id);
}

/// The nesting depth of a kind: of two host records with the same times, the deeper one is inside.
int perfetto_depth(HostKind kind) {
  if (kind == HostKind::annotation) return 0;
  if (kind == HostKind::python) return 1;
  return kind == HostKind::op ? 2 : 3;
}

void describe_host(const Trace& trace, const HostRecord& record, PerfettoPackets& out) {
  out.name(trace.names[record.name]);
  out.category(category_of(record.kind));
  add_unless(0, "correlation", record.correlation, out);
  add_unless(0, "External id", record.external, out);
  add_unless(0, "start/end range", record.nests ? 0 : 1, out);
  const Thread& thread = trace.threads[record.thread];
  constexpr std::int64_t kMax = 0x7fffffff;
  if (thread.process < 0 || thread.process > kMax || thread.id < 0 || thread.id > kMax) {
    out.argument("process", thread.process);
    out.argument("thread", thread.id);
  }
  if (record.details == kNone) return;
  const OpDetails& details = trace.op_details[record.details];
  add_text(trace, "Input Dims", details.shapes, out);
  add_text(trace, "Input type", details.types, out);
  add_text(trace, "Concrete Inputs", details.values, out);
  add_text(trace, "Call stack", details.stack, out);
  add_text(trace, "kernel", details.kernel, out);
  add_unless(-1, "Sequence number", details.sequence, out);
  if (details.forward_thread != 0) out.argument_unsigned("Fwd thread id", details.forward_thread);
  add_unless(-1, "Record function id", details.record_function, out);
  add_unless(-1, "Python id", details.python_id, out);
  add_unless(-1, "Python parent id", details.python_parent, out);
}

void describe_device(const Trace& trace, const DeviceRecord& record, PerfettoPackets& out) {
  if (record.kind == DeviceKind::copy) {
    out.name(copy_name(trace, record));
  } else {
    out.name(trace.names[record.name]);
  }
  out.category(category_of(record.kind));
  out.argument("device", std::int64_t{trace.streams[record.stream].device});
  add_stream(trace, "stream", record.stream, out);
  add_unless(0, "correlation", record.correlation, out);
  add_unless(0, "External id", record.external, out);
  if (record.graph_node != 0) out.argument_unsigned("graph node id", record.graph_node);
  add_unless(0, "bytes", record.bytes, out);
  add_unless(0, "grid", record.grid, out);
  add_unless(0, "block", record.block, out);
  if (record.launch != kNone) {
    const LaunchShape& shape = trace.launches[record.launch];
    each_launch_field([&](std::string_view name, auto member) {
      add_unless(0, name, std::int64_t{shape.*member}, out);
    });
  }
  if (record.direction != CopyDirection::none) out.argument("kind", copy_sign(record.direction));
  if (record.kind != DeviceKind::kernel || record.details == kNone) return;
  const CollectiveDetails& details = trace.collectives[record.details];
  out.argument("Collective name", trace.names[details.collective]);
  add_text(trace, "dtype", details.dtype, out);
  add_text(trace, "Process Group Name", details.group, out);
  add_text(trace, "Process Group Ranks", details.ranks, out);
  out.argument("In msg nelems", details.in_elements);
  out.argument("Out msg nelems", details.out_elements);
  out.argument("Group size", std::int64_t{details.group_size});
  add_unless(-1, "Seq", details.sequence, out);
}

void describe_sync(const Trace& trace, const SyncRecord& record, PerfettoPackets& out) {
  const std::uint32_t known = record.stream != kNone ? record.stream : record.wait_on_stream;
  out.name("wait: " + std::string(to_string(record.kind)));
  out.category("cuda_sync");
  out.argument("sync", to_string(record.kind));
  if (known != kNone) out.argument("device", std::int64_t{trace.streams[known].device});
  add_stream(trace, "stream", record.stream, out);
  add_stream(trace, "wait_on_stream", record.wait_on_stream, out);
  add_unless(0, "correlation", record.correlation, out);
  add_unless(0, "wait_on_cuda_event_record_corr_id", record.wait_on_correlation, out);
  add_unless(0, "wait_on_cuda_event_id", record.event, out);
}

void describe_memory(const Trace& trace, const MemoryRecord& record, PerfettoPackets& out) {
  out.name("[memory]");
  out.category("cpu_instant_event");
  out.argument("Bytes", record.bytes);
  if (record.address != 0) out.argument_unsigned("Addr", record.address);
  add_unless(-1, "Total Allocated", record.total_allocated, out);
  add_unless(-1, "Total Reserved", record.total_reserved, out);
  out.argument("Device Id", std::int64_t{record.device});
  if (record.action != MemoryAction::block) out.argument("action", to_string(record.action));
  if (record.stream != kNone)
    out.argument("stream device", std::int64_t{trace.streams[record.stream].device});
  add_stream(trace, "stream", record.stream, out);
  add_text(trace, "Call stack", record.stack, out);
}

/// The begin or end of a slice, or an instant. All of them are sorted by time before they are
/// written.
struct TimedEvent {
  std::int64_t time_ns = 0;
  std::uint64_t track = 0;
  std::uint32_t record = 0;
  enum class Kind : std::uint8_t { host, device, sync, end, memory, link } kind = Kind::end;
};

// The id of a track consists of its kind, an index and a row.
enum class TrackKind : std::uint64_t {
  file = 1,
  process,
  thread,
  device,
  stream,
  ranges,
  waits,
  counters
};
std::uint64_t track_id(TrackKind track_kind, std::uint64_t index, std::uint64_t row = 0) {
  return static_cast<std::uint64_t>(track_kind) << 56U | index << 28U | row;
}

constexpr std::uint64_t kNoStream = 0xfffffff;

bool fits(std::int64_t id) { return id >= 0 && id <= std::numeric_limits<std::int32_t>::max(); }

class PerfettoExport {
 public:
  PerfettoExport(const Trace& trace, PerfettoPackets& out, const RankView* view)
      : trace_(trace), out_(out), view_(view) {}

  void write() {
    out_.begin(trace_.origin_ns);
    write_threads();
    write_devices();
    add_host_slices();
    add_device_slices();
    add_sync_slices();
    add_instants();
    link_launches();
    link_waits();
    std::stable_sort(events_.begin(), events_.end(), [](const TimedEvent& a, const TimedEvent& b) {
      return a.time_ns < b.time_ns;
    });
    write_head();
    for (const TimedEvent& event : events_) write(event);
  }

 private:
  std::int64_t absolute(std::int64_t time_ns) const { return trace_.origin_ns + time_ns; }

  void write_head() {
    const std::uint64_t track = track_id(TrackKind::file, 0);
    out_.group(track, "about this trace", 0, 1'000'000);
    out_.event(TrackEventType::instant, track);
    out_.name(kPerfettoHead);
    out_.category(kPerfettoHead);
    out_.argument("format", trace_.format);
    out_.argument("rank", std::int64_t{trace_.rank});
    out_.argument("world_size", std::int64_t{trace_.world_size});
    out_.argument("origin_ns", trace_.origin_ns);
    out_.argument("tick_ns", trace_.tick_ns);
    for (const Device& device : trace_.properties) {
      out_.argument("device", std::int64_t{device.ordinal});
      out_.argument("device name", device.name);
      out_.argument("memory_bytes", device.memory_bytes);
      out_.argument("multiprocessors", std::int64_t{device.multiprocessors});
      out_.argument("major", std::int64_t{device.major});
      out_.argument("minor", std::int64_t{device.minor});
    }
    for (const auto& [key, json] : trace_.metadata) out_.argument("metadata " + key, json);
    out_.write_event(absolute(events_.empty() ? 0 : events_.front().time_ns));
  }

  void write_threads() {
    std::map<std::int64_t, std::uint64_t> processes;
    for (std::size_t i = 0; i < trace_.threads.size(); ++i) {
      const Thread& thread = trace_.threads[i];
      const auto [known, added] =
          processes.try_emplace(thread.process, track_id(TrackKind::process, processes.size()));
      const std::string label =
          view_ ? view_->processes.at(thread.process) : "process " + std::to_string(thread.process);
      if (added && fits(thread.process)) out_.process(known->second, thread.process, label);
      if (added && !fits(thread.process)) out_.group(known->second, label, 0, 0);
      const std::uint64_t track = track_id(TrackKind::thread, i);
      if (fits(thread.process) && fits(thread.id)) {
        out_.thread(track, thread.process, thread.id, thread.name);
      } else {
        out_.group(track, thread.name, known->second, 0);
      }
    }
  }

  void write_devices() {
    for (const Stream& stream : trace_.streams) devices_.try_emplace(stream.device, 0);
    for (const MemoryRecord& record : trace_.memory) devices_.try_emplace(record.device, 0);
    std::uint64_t count = 0;
    for (auto& [device, track] : devices_) {
      track = track_id(TrackKind::device, count++);
      std::string label = device < 0 ? "memory of the host" : "GPU " + std::to_string(device);
      if (view_ != nullptr && device >= 0) label = view_->devices.at(device);
      for (const Device& known : trace_.properties) {
        if (known.ordinal == device && !known.name.empty())
          label += fmt::format(" ({})", known.name);
      }
      out_.group(track, label, 0, 1000 + static_cast<std::int32_t>(count));
      out_.bytes_counter(counter_of(track, 0), "allocated", track);
      out_.bytes_counter(counter_of(track, 1), "reserved", track);
    }
  }

  static std::uint64_t counter_of(std::uint64_t device_track, std::uint64_t index) {
    return track_id(TrackKind::counters, device_track >> 28U & 0xfffffffU, index);
  }

  /// The track of a stream's device; 0 for kNoStream.
  std::uint64_t parent_of(std::uint64_t stream) const {
    return stream == kNoStream ? 0 : devices_.at(trace_.streams[stream].device);
  }

  /// Arranges slices in rows, each of which becomes a track of the same name, and adds their begins
  /// and ends to `events_`.
  void add_slices(std::vector<Slice>& slices, TrackKind track_kind, std::uint64_t index,
                  TimedEvent::Kind kind, bool nests, std::string_view label) {
    const std::uint32_t rows = assign_rows(slices, nests);
    const std::uint64_t first = track_id(track_kind, index);
    const auto position = static_cast<std::int32_t>(index);
    if (track_kind != TrackKind::thread) out_.group(first, label, parent_of(index), position);
    for (std::uint32_t row = 1; row < rows; ++row) {
      const std::uint64_t parent = track_kind == TrackKind::thread ? first : parent_of(index);
      out_.group(track_id(track_kind, index, row), label, parent, position);
    }
    std::vector<std::vector<std::pair<std::int64_t, std::uint32_t>>> open(rows);
    const auto close = [&](std::uint32_t row, std::int64_t until) {
      while (!open[row].empty() && open[row].back().first <= until) {
        events_.push_back({open[row].back().first, track_id(track_kind, index, row),
                           open[row].back().second, TimedEvent::Kind::end});
        open[row].pop_back();
      }
    };
    for (const Slice& slice : slices) {
      close(slice.row, slice.start_ns);
      events_.push_back(
          {slice.start_ns, track_id(track_kind, index, slice.row), slice.record, kind});
      open[slice.row].emplace_back(slice.end_ns, slice.record);
    }
    for (std::uint32_t row = 0; row < rows; ++row)
      close(row, std::numeric_limits<std::int64_t>::max());
  }

  void add_host_slices() {
    std::vector<std::vector<Slice>> slices(trace_.threads.size());
    for (std::size_t i = 0; i < trace_.hosts.size(); ++i) {
      const HostRecord& record = trace_.hosts[i];
      slices[record.thread].push_back({record.start_ns, record.start_ns + record.duration_ns,
                                       static_cast<std::uint32_t>(i), 0,
                                       static_cast<std::uint8_t>(perfetto_depth(record.kind))});
    }
    for (std::size_t i = 0; i < slices.size(); ++i)
      add_slices(slices[i], TrackKind::thread, i, TimedEvent::Kind::host, true,
                 trace_.threads[i].name);
  }

  void add_device_slices() {
    std::vector<std::vector<Slice>> work(trace_.streams.size()), ranges(trace_.streams.size());
    for (std::size_t i = 0; i < trace_.devices.size(); ++i) {
      const DeviceRecord& record = trace_.devices[i];
      auto& slices = record.kind == DeviceKind::annotation ? ranges : work;
      slices[record.stream].push_back(
          {record.start_ns, record.start_ns + record.duration_ns, static_cast<std::uint32_t>(i)});
    }
    for (std::size_t i = 0; i < work.size(); ++i) {
      const std::string label = "stream " + std::to_string(trace_.streams[i].id);
      if (!work[i].empty())
        add_slices(work[i], TrackKind::stream, i, TimedEvent::Kind::device, false, label);
      if (!ranges[i].empty())
        add_slices(ranges[i], TrackKind::ranges, i, TimedEvent::Kind::device, true,
                   label + " (ranges)");
    }
  }

  void add_sync_slices() {
    std::map<std::uint32_t, std::vector<Slice>> slices;
    for (std::size_t i = 0; i < trace_.syncs.size(); ++i) {
      const SyncRecord& record = trace_.syncs[i];
      const std::uint32_t known = record.stream != kNone ? record.stream : record.wait_on_stream;
      slices[known].push_back(
          {record.start_ns, record.start_ns + record.duration_ns, static_cast<std::uint32_t>(i)});
    }
    for (auto& [stream, waits] : slices) {
      if (stream != kNone) {
        add_slices(waits, TrackKind::waits, stream, TimedEvent::Kind::sync, true,
                   fmt::format("stream {} (waits)", trace_.streams[stream].id));
      } else {
        add_slices(waits, TrackKind::waits, kNoStream, TimedEvent::Kind::sync, true,
                   "waits for a device");
      }
    }
  }

  void add_instants() {
    for (std::size_t i = 0; i < trace_.memory.size(); ++i)
      events_.push_back({trace_.memory[i].time_ns,
                         track_id(TrackKind::thread, trace_.memory[i].thread),
                         static_cast<std::uint32_t>(i), TimedEvent::Kind::memory});
    for (std::size_t i = 0; i < trace_.links.size(); ++i)
      events_.push_back({trace_.links[i].time_ns,
                         track_id(TrackKind::thread, trace_.links[i].thread),
                         static_cast<std::uint32_t>(i), TimedEvent::Kind::link});
  }

  void link_launches() {
    for (std::size_t i = 0; i < trace_.devices.size(); ++i) {
      const DeviceRecord& record = trace_.devices[i];
      if (record.correlation != 0 && record.kind != DeviceKind::annotation)
        launched_[record.correlation].push_back(static_cast<std::uint32_t>(i));
    }
  }

  void link_waits() {
    if (view_ == nullptr) return;
    std::uint64_t id = kFirstWait;
    for (const RankView::Wait& wait : view_->waits) {
      waits_[wait.from].emplace_back(++id, false);
      waits_[wait.to].emplace_back(id, true);
    }
  }

  void write(const TimedEvent& event) {
    const auto type =
        event.kind == TimedEvent::Kind::end ? TrackEventType::slice_end
        : event.kind == TimedEvent::Kind::memory || event.kind == TimedEvent::Kind::link
            ? TrackEventType::instant
            : TrackEventType::slice_begin;
    out_.event(type, event.track);
    switch (event.kind) {
      case TimedEvent::Kind::host:
        describe(trace_.hosts[event.record]);
        break;
      case TimedEvent::Kind::device:
        describe(trace_.devices[event.record], event.record);
        break;
      case TimedEvent::Kind::sync:
        describe_sync(trace_, trace_.syncs[event.record], out_);
        break;
      case TimedEvent::Kind::memory:
        describe_memory(trace_, trace_.memory[event.record], out_);
        break;
      case TimedEvent::Kind::link:
        describe(trace_.links[event.record]);
        break;
      case TimedEvent::Kind::end:
        break;
    }
    out_.write_event(absolute(event.time_ns));
    if (event.kind == TimedEvent::Kind::memory) write_counters(trace_.memory[event.record]);
  }

  void describe(const HostRecord& record) {
    describe_host(trace_, record, out_);
    const auto found = launched_.find(record.correlation);
    if (!is_call(record.kind) || found == launched_.end()) return;
    for (const std::uint32_t device : found->second) out_.flow(std::uint64_t{device} + 1, false);
  }

  void describe(const DeviceRecord& record, std::uint32_t number) {
    describe_device(trace_, record, out_);
    if (record.correlation != 0 && record.kind != DeviceKind::annotation)
      out_.flow(std::uint64_t{number} + 1, true);
    const auto waits = waits_.find(number);
    if (waits == waits_.end()) return;
    for (const auto& [id, ends] : waits->second) out_.flow(id, ends);
  }

  void describe(const LinkRecord& record) {
    out_.name("fwdbwd");
    out_.category("fwdbwd");
    out_.argument("id", record.id);
    out_.argument("end", std::int64_t{record.is_end});
    out_.flow(static_cast<std::uint64_t>(record.id) | std::uint64_t{1} << 63U, record.is_end);
  }

  void write_counters(const MemoryRecord& record) {
    const std::uint64_t device = devices_.at(record.device);
    const std::int64_t totals[] = {record.total_allocated, record.total_reserved};
    for (std::uint64_t i = 0; i < 2; ++i) {
      if (totals[i] < 0) continue;
      out_.event(TrackEventType::counter, counter_of(device, i));
      out_.counter_value(totals[i]);
      out_.write_event(absolute(record.time_ns));
    }
  }

  static constexpr std::uint64_t kFirstWait = std::uint64_t{1} << 62U;  ///< Ids of flows above it.

  const Trace& trace_;
  PerfettoPackets& out_;
  const RankView* view_;                           ///< nullptr if the trace is of one rank.
  std::map<std::int32_t, std::uint64_t> devices_;  ///< Track of each device.
  std::vector<TimedEvent> events_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> launched_;  ///< By correlation.
  /// Flows from collectives that wait to the collective of the rank that enters last: id and
  /// whether the flow ends here, by device record.
  std::unordered_map<std::uint32_t, std::vector<std::pair<std::uint64_t, bool>>> waits_;
};

}  // namespace

void export_perfetto(const Trace& trace, const std::string& path) {
  export_perfetto(trace, path, nullptr);
}

void export_perfetto(const Trace& trace, const std::string& path, const RankView* view) {
  if (!trace.has_times) {
    throw Error(fmt::format(
        "a Perfetto trace needs times, but this trace ({}) has only the order of operators",
        trace.format));
  }
  if (trace.record_count() == 0) throw Error("this trace contains nothing to show");
  PerfettoPackets packets(path);
  PerfettoExport(trace, packets, view).write();
  packets.close();
}

}  // namespace foretrace
