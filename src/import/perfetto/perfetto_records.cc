#include "import/perfetto/perfetto_records.h"

#include <algorithm>
#include <limits>

#include "base/wide.h"
#include "import/common/times.h"
#include "trace/launch_shape.h"

namespace foretrace {
namespace {

constexpr std::int64_t kOtherTracks = -3'000'000;  ///< Ids of tracks that are not threads.
constexpr int kDeepestParents = 64;

struct HostWord {
  std::string_view category;
  HostKind kind;
};
constexpr HostWord kHostWords[] = {
    {"cpu_op", HostKind::op},
    {"user_annotation", HostKind::annotation},
    {"python_function", HostKind::python},
    {"cuda_runtime", HostKind::runtime},
    {"cuda_driver", HostKind::driver},
    {"overhead", HostKind::overhead},
};
struct DeviceWord {
  std::string_view category;
  DeviceKind kind;
};
constexpr DeviceWord kDeviceWords[] = {
    {"kernel", DeviceKind::kernel},
    {"gpu_memcpy", DeviceKind::copy},
    {"gpu_memset", DeviceKind::fill},
    {"gpu_user_annotation", DeviceKind::annotation},
};

/// The value of `Kind` that is written as `text`; `otherwise` if there is none.
template <class Kind>
Kind named(std::string_view text, Kind last, Kind otherwise) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (to_string(static_cast<Kind>(i)) == text) return static_cast<Kind>(i);
  }
  return otherwise;
}

CopyDirection direction_of(std::string_view sign) {
  if (sign == "HtoD") return CopyDirection::in;
  if (sign == "DtoH") return CopyDirection::out;
  if (sign == "DtoD") return CopyDirection::on_device;
  if (sign == "PtoP") return CopyDirection::peer;
  if (sign == "HtoH") return CopyDirection::on_host;
  return CopyDirection::none;
}

/// Reads one fact about a device, as our own exporter writes them after the number of the device.
void add_fact(const PerfettoArgument& fact, Device& device) {
  if (fact.key == "device name") device.name = fact.text;
  if (fact.key == "memory_bytes") device.memory_bytes = fact.number;
  if (fact.key == "multiprocessors") device.multiprocessors = to_int32(fact.number);
  if (fact.key == "major") device.major = to_int32(fact.number);
  if (fact.key == "minor") device.minor = to_int32(fact.number);
}

}  // namespace

/// Reads a ThreadDescriptor or a ProcessDescriptor. Only the process id of the latter matters.
void PerfettoRecords::read_owner(std::string_view descriptor, Track& track) {
  ProtoReader ids(descriptor);
  while (ids.next()) {
    if (ids.number() == 1) track.process = ids.signed_value();
    if (ids.number() == 2 && track.has_thread) track.thread = ids.signed_value();
    if (ids.number() == 5 && track.has_thread) track.name = ids.bytes();
  }
}

void PerfettoRecords::add_track(std::string_view descriptor) {
  Track track;
  std::uint64_t uuid = 0;
  ProtoReader fields(descriptor);
  while (fields.next()) {
    if (fields.number() == 1) uuid = fields.unsigned_value();
    if (fields.number() == 2 || fields.number() == 10) track.name = fields.bytes();
    if (fields.number() == 5) track.parent = fields.unsigned_value();
    if (fields.number() != 3 && fields.number() != 4) continue;
    (fields.number() == 3 ? track.has_process : track.has_thread) = true;
    read_owner(fields.bytes(), track);
  }
  Track& known = tracks_[uuid];
  // A descriptor is repeated when its sequence restarts.
  track.number = known.number;
  if (track.name.empty()) track.name = std::move(known.name);
  known = std::move(track);
}

std::uint16_t PerfettoRecords::thread_of(const PerfettoEvent& event) {
  constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();
  Track& own = tracks_[event.track];
  const std::int64_t process = event.number("process", kAbsent);
  const std::int64_t thread = event.number("thread", kAbsent);
  if (own.number == kNone) {
    const Track* at = &own;
    for (int depth = 0; !at->has_thread && at->parent != 0 && depth < kDeepestParents; ++depth) {
      const auto parent = tracks_.find(at->parent);
      if (parent == tracks_.end()) break;
      at = &parent->second;
      if (at->has_process) break;
    }
    if (process != kAbsent && thread != kAbsent) {
      own.number = lanes_.thread(process, thread);
    } else if (at->has_thread) {
      own.number = lanes_.thread(at->process, at->thread);
    } else {
      own.number = lanes_.thread(at->process, kOtherTracks - nameless_tracks_++);
    }
    std::string& name = trace_.threads[own.number].name;
    if (name.empty()) name = at->has_thread ? at->name : own.name;
  }
  return static_cast<std::uint16_t>(own.number);
}

void PerfettoRecords::add(const PerfettoEvent& event, std::int64_t time_ns) {
  last_ns_ = std::max(last_ns_, time_ns);
  switch (event.type) {
    case PerfettoEvent::Type::slice_begin:
      return begin(event, time_ns);
    case PerfettoEvent::Type::slice_end: {
      std::vector<OpenSlice>& open = open_[event.track];
      if (open.empty()) {
        ++ends_without_begin_;
        return;
      }
      end(open.back(), time_ns);
      open.pop_back();
      return;
    }
    case PerfettoEvent::Type::instant:
      return add_instant(event, time_ns);
    default:
      return;
  }
}

void PerfettoRecords::begin(const PerfettoEvent& event, std::int64_t time_ns) {
  ++useful_;
  for (const DeviceWord& word : kDeviceWords) {
    const bool ours = event.category == word.category &&
                      event.number("stream", std::numeric_limits<std::int64_t>::min()) !=
                          std::numeric_limits<std::int64_t>::min();
    if (ours) return add_device(event, word.kind, time_ns);
  }
  if (event.category == "cuda_sync" && !event.text("sync").empty()) return add_sync(event, time_ns);
  for (const HostWord& word : kHostWords) {
    if (event.category == word.category) return add_host(event, word.kind, time_ns);
  }
  add_host(event, HostKind::annotation, time_ns);
}

void PerfettoRecords::end(const OpenSlice& slice, std::int64_t time_ns) {
  const std::int64_t duration = std::max<std::int64_t>(time_ns - slice.start_ns, 0);
  if (slice.table == OpenSlice::Table::hosts) trace_.hosts[slice.row].duration_ns = duration;
  if (slice.table == OpenSlice::Table::devices) trace_.devices[slice.row].duration_ns = duration;
  if (slice.table == OpenSlice::Table::syncs) trace_.syncs[slice.row].duration_ns = duration;
}

void PerfettoRecords::add_host(const PerfettoEvent& event, HostKind kind, std::int64_t time_ns) {
  HostRecord record;
  record.start_ns = time_ns;
  record.name = trace_.names.intern(event.name);
  record.kind = kind;
  record.thread = thread_of(event);
  record.nests = event.number("start/end range", 0) == 0;
  record.correlation = static_cast<std::uint32_t>(event.number("correlation", 0));
  record.external = static_cast<std::uint32_t>(event.number("External id", 0));
  record.details = details(event);
  open_[event.track].push_back({OpenSlice::Table::hosts, trace_.hosts.size(), time_ns});
  trace_.hosts.push_back(record);
}

std::uint32_t PerfettoRecords::details(const PerfettoEvent& event) {
  OpDetails details;
  details.shapes = text(event, "Input Dims");
  details.types = text(event, "Input type");
  details.values = text(event, "Concrete Inputs");
  details.stack = text(event, "Call stack");
  details.sequence = event.number("Sequence number", -1);
  details.forward_thread = static_cast<std::uint64_t>(event.number("Fwd thread id", 0));
  details.record_function = event.number("Record function id", -1);
  details.python_id = event.number("Python id", -1);
  details.python_parent = event.number("Python parent id", -1);
  const bool says_something =
      details.shapes != NameId{} || details.types != NameId{} || details.values != NameId{} ||
      details.stack != NameId{} || details.sequence != -1 || details.forward_thread != 0 ||
      details.record_function != -1 || details.python_id != -1 || details.python_parent != -1;
  if (!says_something) return kNone;
  trace_.op_details.push_back(details);
  return static_cast<std::uint32_t>(trace_.op_details.size() - 1);
}

std::uint32_t PerfettoRecords::stream(const PerfettoEvent& event, std::string_view device,
                                      std::string_view key) {
  constexpr std::int64_t kAbsent = std::numeric_limits<std::int64_t>::min();
  const std::int64_t id = event.number(key, kAbsent);
  return id == kAbsent ? kNone : lanes_.stream(event.number(device, 0), id);
}

void PerfettoRecords::add_device(const PerfettoEvent& event, DeviceKind kind,
                                 std::int64_t time_ns) {
  DeviceRecord record;
  record.start_ns = time_ns;
  record.name = trace_.names.intern(event.name);
  record.kind = kind;
  record.stream = static_cast<std::uint16_t>(stream(event, "device", "stream"));
  record.correlation = static_cast<std::uint32_t>(event.number("correlation", 0));
  record.external = static_cast<std::uint32_t>(event.number("External id", 0));
  record.graph_node = static_cast<std::uint64_t>(event.number("graph node id", 0));
  record.bytes = std::max<std::int64_t>(event.number("bytes", 0), 0);
  record.grid = static_cast<std::uint32_t>(event.number("grid", 0));
  record.block = threads_of_block(event.number("block", 0));
  if (event.number("grid_x", 0) > 0 || event.number("block_x", 0) > 0) {
    LaunchShape shape;
    each_launch_field([&](std::string_view name, auto member) {
      shape.*member = to_uint32(event.number(name, 0));
    });
    launches_.set(record, shape);
  }
  record.direction = direction_of(event.text("kind"));
  record.pinned_host = kind == DeviceKind::copy && event.name.find("Pinned") != event.name.npos;
  if (kind == DeviceKind::kernel && !event.text("Collective name").empty())
    record.details = collective(event);
  open_[event.track].push_back({OpenSlice::Table::devices, trace_.devices.size(), time_ns});
  trace_.devices.push_back(record);
}

std::uint32_t PerfettoRecords::collective(const PerfettoEvent& event) {
  trace_.collectives.push_back({.collective = text(event, "Collective name"),
                                .dtype = text(event, "dtype"),
                                .group = text(event, "Process Group Name"),
                                .ranks = text(event, "Process Group Ranks"),
                                .in_elements = event.number("In msg nelems", 0),
                                .out_elements = event.number("Out msg nelems", 0),
                                .group_size = to_int32(event.number("Group size", 0)),
                                .sequence = event.number("Seq", -1)});
  return static_cast<std::uint32_t>(trace_.collectives.size() - 1);
}

void PerfettoRecords::add_sync(const PerfettoEvent& event, std::int64_t time_ns) {
  SyncRecord record;
  record.start_ns = time_ns;
  record.kind = named(event.text("sync"), SyncKind::unknown, SyncKind::unknown);
  record.stream = stream(event, "device", "stream");
  record.wait_on_stream = stream(event, "device", "wait_on_stream");
  record.correlation = static_cast<std::uint32_t>(event.number("correlation", 0));
  record.wait_on_correlation =
      static_cast<std::uint32_t>(event.number("wait_on_cuda_event_record_corr_id", 0));
  record.event = static_cast<std::uint32_t>(event.number("wait_on_cuda_event_id", 0));
  open_[event.track].push_back({OpenSlice::Table::syncs, trace_.syncs.size(), time_ns});
  trace_.syncs.push_back(record);
}

void PerfettoRecords::add_instant(const PerfettoEvent& event, std::int64_t time_ns) {
  if (event.category == "foretrace" && event.name == "foretrace") return add_trace_facts(event);
  if (event.category == "fwdbwd") {
    LinkRecord link;
    link.id = event.number("id", 0);
    link.time_ns = time_ns;
    link.thread = thread_of(event);
    link.is_end = event.number("end", 0) != 0;
    trace_.links.push_back(link);
    return;
  }
  if (event.name == "[memory]" && event.category == "cpu_instant_event") add_memory(event, time_ns);
}

void PerfettoRecords::add_memory(const PerfettoEvent& event, std::int64_t time_ns) {
  ++useful_;
  MemoryRecord record;
  record.time_ns = time_ns;
  record.thread = thread_of(event);
  record.bytes = event.number("Bytes", 0);
  record.address = static_cast<std::uint64_t>(event.number("Addr", 0));
  record.total_allocated = event.number("Total Allocated", -1);
  record.total_reserved = event.number("Total Reserved", -1);
  record.device = static_cast<std::int16_t>(
      std::clamp<std::int64_t>(event.number("Device Id", -1), -1, 0x7fff));
  record.action = named(event.text("action"), MemoryAction::snapshot, MemoryAction::block);
  record.stream = stream(event, "stream device", "stream");
  record.stack = text(event, "Call stack");
  trace_.memory.push_back(record);
}

/// Reads the facts about the whole trace that our own exporter adds.
void PerfettoRecords::add_trace_facts(const PerfettoEvent& event) {
  constexpr std::string_view kMetadata = "metadata ";
  constexpr std::int64_t kMaxRanks = 1 << 24;
  trace_.tick_ns = std::max<std::int64_t>(event.number("tick_ns", 1), 1);
  const std::int64_t size = event.number("world_size", 1), rank = event.number("rank", 0);
  if (size >= 1 && size < kMaxRanks) trace_.world_size = static_cast<std::int32_t>(size);
  if (rank >= 0 && rank < kMaxRanks) trace_.rank = static_cast<std::int32_t>(rank);
  for (const PerfettoArgument& argument : event.arguments) {
    if (argument.key.starts_with(kMetadata))
      trace_.metadata[std::string(argument.key.substr(kMetadata.size()))] = argument.text;
    if (argument.key == "device") {
      trace_.properties.emplace_back().ordinal = to_int32(argument.number);
    } else if (!trace_.properties.empty()) {
      add_fact(argument, trace_.properties.back());
    }
  }
  trace_.rank_is_known = trace_.metadata.contains("distributedInfo");
}

void PerfettoRecords::finish() {
  std::int64_t unfinished = 0;
  for (auto& [track, open] : open_) {
    for (const OpenSlice& slice : open) end(slice, last_ns_), ++unfinished;
  }
  const auto note = [&](std::string_view text, std::int64_t count) {
    if (count > 0) trace_.notes.add(Severity::warning, text, {}, count);
  };
  note("slices without an end, ended with the trace", unfinished);
  note("ends of slices without a begin, left out", ends_without_begin_);
  make_times_relative(trace_);
  lanes_.finish();
}

}  // namespace foretrace
