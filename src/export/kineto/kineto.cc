// Writes a trace as PyTorch's profiler does (libkineto, output_json.cpp), record for record:
//
//     hosts         "X" events on pid = process, tid = thread
//     devices       "X" events on pid = device, tid = stream, or another tid if they overlap
//     syncs         "X" events of category cuda_sync on separate tracks beside the streams
//     memory        "[memory]" instants; only blocks have a place
//     links         arrows "fwdbwd"
//     correlation   arrows "ac2g" from calls to the work they launched
//
// The format has no place for the other contents of an execution trace or a memory snapshot.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "export/common/profiler_words.h"
#include "export/common/registered.h"
#include "export/kineto/kineto_file.h"
#include "export/kineto/kineto_tracks.h"
#include "foretrace/error.h"
#include "foretrace/names.h"
#include "foretrace/trace.h"
#include "trace/launch_shape.h"

namespace foretrace {
namespace {

using Json = nlohmann::ordered_json;

Json describe(const Device& device) {
  Json json;
  json["id"] = device.ordinal;
  if (!device.name.empty()) json["name"] = device.name;
  if (device.memory_bytes != 0) json["totalGlobalMem"] = device.memory_bytes;
  if (device.major != 0) json["computeMajor"] = device.major;
  if (device.major != 0) json["computeMinor"] = device.minor;
  if (device.multiprocessors != 0) json["numSms"] = device.multiprocessors;
  return json;
}

std::string devices_of(const Trace& trace) {
  Json all = Json::array();
  for (const Device& device : trace.properties) all.push_back(describe(device));
  return json_line(all);
}

/// The recorded "distributedInfo" with the trace's own rank and world size.
std::string job_of(const Trace& trace, const std::string& recorded) {
  Json json = try_parse_json<Json>(recorded);
  if (!json.is_object()) json = Json::object();
  const auto differs = [&](const char* key, std::int32_t value, std::int32_t otherwise) {
    const auto found = json.find(key);
    const bool known = found != json.end() && found->is_number_integer();
    return (known ? found->get<std::int64_t>() : otherwise) != value;
  };
  bool as_recorded = !recorded.empty();
  if (differs("rank", trace.rank, 0)) json["rank"] = trace.rank, as_recorded = false;
  if (differs("world_size", trace.world_size, 1))
    json["world_size"] = trace.world_size, as_recorded = false;
  return as_recorded ? recorded : json_line(json);
}

/// Writes everything before the events: the machine, the rank, other metadata of the trace.
/// `base_ns` is the value of the clock at time 0.
void write_kineto_header(const Trace& trace, std::int64_t base_ns, KinetoFile& file) {
  const auto& known = trace.metadata;
  if (known.count("schemaVersion") == 0) file.member("schemaVersion", "1");
  if (known.count("displayTimeUnit") == 0) file.member("displayTimeUnit", "\"ms\"");
  if (known.count("deviceProperties") == 0 && !trace.properties.empty())
    file.member("deviceProperties", devices_of(trace));
  const auto job = known.find("distributedInfo");
  if (job != known.end() || trace.rank != 0 || trace.world_size != 1)
    file.member("distributedInfo", job_of(trace, job != known.end() ? job->second : ""));
  for (const auto& [key, json] : known) {
    if (key == "traceEvents" || key == "baseTimeNanoseconds" || key == "distributedInfo") continue;
    file.member(key, is_json(json) ? json : json_string(json));
  }
  file.member("baseTimeNanoseconds", std::to_string(base_ns));
  file.begin_events();
}

// Collects the members of an event's "args" in the JSON of PyTorch's profiler, and converts the
// names of a trace or a graph to JSON.

class KinetoArguments {
 public:
  void clear() { text_.clear(); }
  std::string_view text() const { return text_; }

  /// Adds a member. REQUIRES: `json` is a whole JSON value.
  void add(std::string_view key, std::string_view json) {
    if (!text_.empty()) text_ += ", ";
    text_ += '"';
    text_ += key;
    text_ += "\": ";
    text_ += json;
  }

  template <class Integer>
  void add_number(std::string_view key, Integer value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    add(key, {digits, static_cast<std::size_t>(end - digits)});
  }

  template <class Integer>
  void add_unless(Integer absent, std::string_view key, Integer value) {
    if (value != absent) add_number(key, value);
  }

 private:
  std::string text_;
};

/// Converts each name to JSON on its first use only, because thousands of ops share their shapes.
/// REQUIRES: the names outlive this, and no names are added.
class KinetoNames {
 public:
  explicit KinetoNames(const Names& names)
      : names_(names), strings_(names.size()), values_(names.size()) {}

  /// The name as a JSON string.
  const std::string& string(NameId id) {
    std::string& json = strings_[static_cast<std::size_t>(id)];
    if (json.empty()) json = json_string(names_[id]);
    return json;
  }

  /// The name as kineto_value() returns it.
  const std::string& value(NameId id) {
    std::string& json = values_[static_cast<std::size_t>(id)];
    if (json.empty()) json = kineto_value(names_[id]);
    return json;
  }

 private:
  const Names& names_;
  std::vector<std::string> strings_, values_;
};

/// Adds the details of an op to `arguments`, without empty values. `json` converts a name of the
/// trace to JSON text.
template <class Json>
void add_op_details(const OpDetails& details, Json&& json, KinetoArguments& arguments) {
  const auto add_text = [&](std::string_view key, NameId text) {
    if (text != NameId{}) arguments.add(key, json(text));
  };
  add_text("Input Dims", details.shapes);
  add_text("Input type", details.types);
  add_text("Concrete Inputs", details.values);
  add_text("Call stack", details.stack);
  add_text("kernel", details.kernel);
  arguments.add_unless(std::int64_t{-1}, "Sequence number", details.sequence);
  arguments.add_unless(std::uint64_t{0}, "Fwd thread id", details.forward_thread);
  arguments.add_unless(std::int64_t{-1}, "Record function id", details.record_function);
  arguments.add_unless(std::int64_t{-1}, "Python id", details.python_id);
  arguments.add_unless(std::int64_t{-1}, "Python parent id", details.python_parent);
}

constexpr std::string_view name_of(SyncKind kind) {
  switch (kind) {
    case SyncKind::stream:
      return "\"Stream Sync\"";
    case SyncKind::event:
      return "\"Event Sync\"";
    case SyncKind::context:
      return "\"Context Sync\"";
    case SyncKind::stream_wait_event:
      return "\"Stream Wait Event\"";
    case SyncKind::unknown:
      return "\"Unknown Sync\"";
  }
  return "";
}

/// Knows which calls have launched recorded work, and which work has a recorded call.
class Launches {
 public:
  explicit Launches(const Trace& trace) {
    for (const DeviceRecord& record : trace.devices) {
      if (record.correlation != 0 && record.kind != DeviceKind::annotation)
        launched_.push_back(record.correlation);
    }
    sort_unique(launched_);
    for (const HostRecord& record : trace.hosts) {
      if (is_call(record.kind) && record.correlation != 0) called_.push_back(record.correlation);
    }
    sort_unique(called_);
  }

  bool launched(std::uint32_t correlation) const { return has(launched_, correlation); }
  bool called(std::uint32_t correlation) const { return has(called_, correlation); }

 private:
  static void sort_unique(std::vector<std::uint32_t>& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
  static bool has(const std::vector<std::uint32_t>& ids, std::uint32_t id) {
    return std::binary_search(ids.begin(), ids.end(), id);
  }

  std::vector<std::uint32_t> launched_, called_;
};

class KinetoExport {
 public:
  KinetoExport(const Trace& trace, std::int64_t shift_ns, KinetoFile& file, const RankView* view)
      : trace_(trace),
        view_(view),
        shift_ns_(shift_ns),
        file_(file),
        tracks_(trace),
        launches_(trace),
        names_(trace.names) {}

  void write() {
    write_track_names(trace_, tracks_, view_, file_);
    for (const HostRecord& record : trace_.hosts) write(record);
    for (std::size_t i = 0; i < trace_.devices.size(); ++i)
      write(trace_.devices[i], tracks_.device(i));
    for (std::size_t i = 0; i < trace_.syncs.size(); ++i) write(trace_.syncs[i], tracks_.sync(i));
    for (const MemoryRecord& record : trace_.memory) write(record);
    for (const LinkRecord& record : trace_.links) {
      file_.arrow(record.is_end, record.id, track_of(record.thread), time(record.time_ns),
                  "fwdbwd");
    }
    if (view_ != nullptr) write_waits();
  }

 private:
  /// Writes arrows from each rank that waits in a collective to the rank that enters last.
  void write_waits() {
    std::int64_t id = 0;
    for (const RankView::Wait& wait : view_->waits) {
      ++id;
      for (const bool is_end : {false, true}) {
        const std::uint32_t record = is_end ? wait.to : wait.from;
        file_.arrow(is_end, id, tracks_.device(record), time(trace_.devices[record].start_ns),
                    "waits for rank");
      }
    }
  }

  void write(const HostRecord& record) {
    arguments_.clear();
    arguments_.add_unless(0U, "External id", record.external);
    if (is_call(record.kind)) arguments_.add_unless(0U, "correlation", record.correlation);
    arguments_.add_unless(0, "start/end range", record.nests ? 0 : 1);
    if (record.details != kNone) {
      const auto json = [&](NameId id) -> const std::string& { return names_.value(id); };
      add_op_details(trace_.op_details[record.details], json, arguments_);
    }
    const Track track = track_of(record.thread);
    complete(category_of(record.kind), names_.string(record.name), track, record);
    if (is_call(record.kind) && launches_.launched(record.correlation))
      file_.arrow(false, record.correlation, track, time(record.start_ns));
  }

  void write(const DeviceRecord& record, Track track) {
    const Stream& stream = trace_.streams[record.stream];
    arguments_.clear();
    arguments_.add_number("device", stream.device);
    arguments_.add_number("stream", stream.id);
    arguments_.add_unless(0U, "correlation", record.correlation);
    arguments_.add_unless(0U, "External id", record.external);
    arguments_.add_unless(std::uint64_t{0}, "graph node id", record.graph_node);
    if (record.kind == DeviceKind::kernel) {
      add_launch(record);
      if (record.details != kNone) add_collective(trace_.collectives[record.details]);
    } else if (record.kind != DeviceKind::annotation) {
      arguments_.add_number("bytes", record.bytes);
    }
    if (record.kind == DeviceKind::copy) {
      add_endpoints(record, stream);
      complete(category_of(record.kind), json_string(copy_name(trace_, record)), track, record);
    } else {
      complete(category_of(record.kind), names_.string(record.name), track, record);
    }
    if (record.kind != DeviceKind::annotation && launches_.called(record.correlation))
      file_.arrow(true, record.correlation, track, time(record.start_ns));
  }

  void add_launch(const DeviceRecord& record) {
    const LaunchShape shape = launch_shape(trace_, record);
    const auto add_sizes = [&](std::string_view key, auto x, auto y, auto z) {
      arguments_.add(key, fmt::format("[{}, {}, {}]", x, y, z));
    };
    if (record.grid != 0) add_sizes("grid", shape.grid_x, shape.grid_y, shape.grid_z);
    if (record.block != 0) add_sizes("block", shape.block_x, shape.block_y, shape.block_z);
    arguments_.add_unless(0U, "registers per thread", shape.registers);
    arguments_.add_unless(std::uint64_t{0}, "shared memory",
                          std::uint64_t{shape.static_shared} + shape.dynamic_shared);
    arguments_.add_unless(0U, "static shared memory", shape.static_shared);
  }

  void add_endpoints(const DeviceRecord& record, const Stream& stream) {
    if (record.direction == CopyDirection::none) return;
    arguments_.add("kind", fmt::format("\"{}\"", copy_sign(record.direction)));
    if (record.direction != CopyDirection::peer) return;
    // A trace does not record the other device.
    arguments_.add_number("fromDevice", -1);
    arguments_.add_number("toDevice", stream.device);
  }

  void add_collective(const CollectiveDetails& details) {
    arguments_.add("Collective name", names_.string(details.collective));
    arguments_.add_number("In msg nelems", details.in_elements);
    arguments_.add_number("Out msg nelems", details.out_elements);
    arguments_.add_number("Group size", details.group_size);
    add_text("dtype", details.dtype);
    add_text("Process Group Name", details.group);
    if (details.ranks != NameId{})
      arguments_.add("Process Group Ranks",
                     names_.string(details.ranks));  // PyTorch's profiler writes a string, too.
    arguments_.add_unless(std::int64_t{-1}, "Seq", details.sequence);
  }

  void write(const SyncRecord& record, Track track) {
    const auto id = [&](std::uint32_t stream) {
      return stream == kNone ? std::int64_t{-1} : trace_.streams[stream].id;
    };
    arguments_.clear();
    arguments_.add("cuda_sync_kind", name_of(record.kind));
    arguments_.add_number("stream", id(record.stream));
    arguments_.add_unless(0U, "correlation", record.correlation);
    arguments_.add_number("device", device_of(trace_, record));
    const bool of_event = record.wait_on_stream != kNone || record.event != 0 ||
                          record.wait_on_correlation != 0 ||
                          record.kind == SyncKind::stream_wait_event;
    if (of_event) {
      arguments_.add_number("wait_on_stream", id(record.wait_on_stream));
      arguments_.add_number("wait_on_cuda_event_record_corr_id",
                            record.wait_on_correlation == 0
                                ? std::int64_t{-1}
                                : std::int64_t{record.wait_on_correlation});
      arguments_.add_number("wait_on_cuda_event_id", record.event);
    }
    complete("cuda_sync", name_of(record.kind), track, record);
  }

  void write(const MemoryRecord& record) {
    if (record.action != MemoryAction::block) return;
    arguments_.clear();
    arguments_.add_unless(std::int64_t{-1}, "Total Reserved", record.total_reserved);
    arguments_.add_unless(std::int64_t{-1}, "Total Allocated", record.total_allocated);
    arguments_.add_number("Bytes", record.bytes);
    arguments_.add_unless(std::uint64_t{0}, "Addr", record.address);
    arguments_.add_number("Device Id", record.device);
    arguments_.add_number("Device Type", record.device < 0 ? 0 : 1);
    file_.instant("cpu_instant_event", "\"[memory]\"", track_of(record.thread),
                  time(record.time_ns), arguments_.text());
  }

  template <class Record>
  void complete(std::string_view category, std::string_view name, Track track,
                const Record& record) {
    const Nanoseconds start = time(record.start_ns);
    file_.complete(category, name, track, start, start + Nanoseconds(record.duration_ns),
                   arguments_.text());
  }

  void add_text(std::string_view key, NameId id) {
    if (id != NameId{}) arguments_.add(key, names_.value(id));
  }

  Nanoseconds time(std::int64_t ns) const { return Nanoseconds(ns + shift_ns_); }
  Track track_of(std::uint16_t thread) const {
    return {trace_.threads[thread].process, trace_.threads[thread].id};
  }

  const Trace& trace_;
  const RankView* view_;  ///< nullptr if the trace is of one rank.
  std::int64_t shift_ns_;
  KinetoFile& file_;
  KinetoTracks tracks_;
  Launches launches_;
  KinetoNames names_;
  KinetoArguments arguments_;
};

}  // namespace

void export_kineto(const Trace& trace, const std::string& path) {
  export_kineto(trace, path, nullptr);
}

void export_kineto(const Trace& trace, const std::string& path, const RankView* view) {
  if (!trace.has_times) {
    throw Error(fmt::format(
        "a Kineto trace needs times, but this trace ({}) has only the order of operators",
        trace.format));
  }
  const bool any_block =
      std::any_of(trace.memory.begin(), trace.memory.end(),
                  [](const MemoryRecord& record) { return record.action == MemoryAction::block; });
  if (trace.hosts.empty() && trace.devices.empty() && trace.syncs.empty() && !any_block)
    throw Error("this trace contains nothing that a Kineto trace has a place for");
  // Readers take time 0 for "never timed", so all times are shifted by a microsecond. If the clock
  // ticks in nanoseconds, one more makes that visible even if all times are whole microseconds.
  const std::int64_t shift_ns = trace.tick_ns == 1 ? 1001 : 1000;
  KinetoFile file(path);
  write_kineto_header(trace, trace.origin_ns - shift_ns, file);
  KinetoExport(trace, shift_ns, file, view).write();
  file.close();
}

}  // namespace foretrace
