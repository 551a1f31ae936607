// Reads the profiles of XLA (XPlane): one message of protocol buffers, whose planes hold the lines
// of a host or a device.
//
//     XSpace  { planes 1 }
//     XPlane  { id 1, name 2, lines 3, event_metadata 4 (map), stat_metadata 5 (map), stats 6 }
//     XLine   { id 1, name 2, timestamp_ns 3, events 4, display_name 11 }
//     XEvent  { metadata_id 1, offset_ps 2, duration_ps 3, stats 4, num_occurrences 5 }
//     XStat   { metadata_id 1, double 2, uint64 3, int64 4, str 5, bytes 6, ref 7 }
//     XEventMetadata { id 1, name 2, display_name 4 }    XStatMetadata { id 1, name 2 }
//
// Lines become threads named as in the Chrome traces of the same profiler, so that
// place_lane_work() sorts both. Planes are read one at a time, because names follow the events.

#include "import/xplane/xplane.h"

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/wide.h"
#include "foretrace/error.h"
#include "import/common/device_lanes.h"
#include "import/common/intern_cache.h"
#include "import/common/times.h"
#include "import/files/registered.h"
#include "import/files/source.h"
#include "import/scan/json_scan.h"
#include "import/scan/protobuf.h"

namespace foretrace {

namespace {

constexpr std::int64_t kPicoseconds = 1000;  ///< In a nanosecond.

/// Value of a stat: a number or a text.
struct XStat {
  std::string_view name;
  std::int64_t number = 0;
  std::string_view text;
};

/// The message of a map entry: its value.
std::string_view map_value(std::string_view entry) {
  std::string_view value;
  for (ProtoReader fields(entry); fields.next();) {
    if (fields.number() == 2) value = fields.bytes();
  }
  return value;
}

bool is_xplane_name(std::string_view name) {
  return name.starts_with("/host:") || name.starts_with("/device:") || name.starts_with("#") ||
         name == "Task Environment";
}

/// A plane whose lines have not been read, and its names.
struct XPlane {
  std::string_view name;
  std::vector<std::string_view> lines, stats;
  std::unordered_map<std::int64_t, std::string_view> events, stat_names;
  bool damaged = false;

  explicit XPlane(std::string_view message) {
    ProtoReader fields(message);
    while (fields.next()) {
      if (fields.number() == 2) name = fields.bytes();
      if (fields.number() == 3) lines.push_back(fields.bytes());
      if (fields.number() == 4) add_name(map_value(fields.bytes()), events);
      if (fields.number() == 5) add_name(map_value(fields.bytes()), stat_names);
      if (fields.number() == 6) stats.push_back(fields.bytes());
    }
    damaged = fields.damaged();
  }

  XStat stat(std::string_view message) const {
    XStat stat;
    for (ProtoReader fields(message); fields.next();) {
      if (fields.number() == 1) stat.name = name_of(fields.signed_value());
      if (fields.number() == 3 || fields.number() == 4) stat.number = fields.signed_value();
      if (fields.number() == 5) stat.text = fields.bytes();
      if (fields.number() == 7) stat.text = name_of(fields.signed_value());
    }
    return stat;
  }

 private:
  std::string_view name_of(std::int64_t id) const {
    const auto found = stat_names.find(id);
    return found == stat_names.end() ? std::string_view() : found->second;
  }

  static void add_name(std::string_view metadata,
                       std::unordered_map<std::int64_t, std::string_view>& names) {
    std::int64_t id = 0;
    std::string_view name, shown;
    for (ProtoReader fields(metadata); fields.next();) {
      if (fields.number() == 1) id = fields.signed_value();
      if (fields.number() == 2) name = fields.bytes();
      if (fields.number() == 4) shown = fields.bytes();
    }
    names.try_emplace(id, shown.empty() ? name : shown);
  }
};

class XSpaceReader {
 public:
  explicit XSpaceReader(Source& bytes) : bytes_(bytes), stream_(bytes), intern_(trace_.names) {}

  Trace read() {
    trace_.format = "xplane";
    while (const auto key = stream_.varint()) {
      if (!read_field(*key)) break;
    }
    if (planes_ == 0) {
      throw TraceError(stream_.is_cut() || damaged_ > 0
                           ? "must contain planes, but ends or is damaged within the first one"
                           : "must contain planes, but has none");
    }
    if (trace_.hosts.empty())
      throw TraceError(fmt::format("must contain events, but its {} planes have none", planes_));
    place_lane_work(trace_, work_, {}, [&](std::int64_t process) -> std::string_view {
      const auto found = processes_.find(process);
      return found == processes_.end() ? std::string_view() : found->second;
    });
    // Times count from the start of the profile, or are absolute already.
    constexpr std::int64_t kYear = 31'536'000'000'000'000;
    make_times_relative(trace_, latest_ < kYear ? start_of_profile_ : 0);
    write_notes();
    return std::move(trace_);
  }

 private:
  /// Reads a field of the file. Returns false if nothing after it can be read.
  bool read_field(std::uint64_t key) {
    const bool is_plane = key >> 3U == 1;
    switch (static_cast<WireType>(key & 7U)) {
      case WireType::varint:
        return stream_.varint().has_value();
      case WireType::fixed64:
        return stream_.take(8).has_value();
      case WireType::fixed32:
        return stream_.take(4).has_value();
      case WireType::bytes:
        if (const auto message = stream_.delimited()) {
          if (is_plane) add_plane(*message);
          return true;
        }
        return false;
      default:
        ++damaged_;
        return false;
    }
  }

  void add_plane(std::string_view message) {
    const XPlane plane(message);
    damaged_ += plane.damaged ? 1 : 0;
    ++planes_;
    const auto device = device_in_name(plane.name);
    has_host_ |= plane.name == "/host:CPU";
    std::int64_t process = device ? -1 - static_cast<std::int64_t>(planes_) : 0;
    const std::uint32_t properties = device ? add_device(*device) : kNone;
    for (const std::string_view message_of_stat : plane.stats) {
      const XStat stat = plane.stat(message_of_stat);
      if (stat.name == "process_id" && !device) process = stat.number;
      if (stat.name == "profile_start_time" && stat.number > 0 && stat.number < kMaxTime)
        start_of_profile_ = stat.number;
      if (properties != kNone) describe_device(trace_.properties[properties], stat);
    }
    if (plane.lines.empty()) return;
    if (!device && !plane.name.starts_with("/host:")) {
      if (other_planes_++ == 0) first_other_plane_ = std::string(plane.name);
      return;
    }
    const bool is_repeated = !names_.insert(std::string(plane.name)).second;
    if (is_repeated) {
      throw TraceError(fmt::format(
          "must be the profile of one host, but has {} twice, as files of several hosts in one do; "
          "give the folder with one .xplane.pb file a host",
          plane.name));
    }
    has_device_ |= device.has_value();
    processes_.try_emplace(process, plane.name);
    for (const std::string_view line : plane.lines) read_line(plane, line, process);
  }

  std::uint32_t add_device(std::int32_t ordinal) {
    trace_.properties.push_back({.ordinal = ordinal, .name = {}});
    return static_cast<std::uint32_t>(trace_.properties.size() - 1);
  }

  static void describe_device(Device& device, const XStat& stat) {
    const std::int32_t number = to_int32(stat.number);
    if (stat.name == "gpu_device_name" || stat.name == "device_type_string")
      device.name = std::string(stat.text);
    if (stat.name == "memory_size") device.memory_bytes = stat.number;
    if (stat.name == "core_count") device.multiprocessors = number;
    if (stat.name == "compute_cap_major") device.major = number;
    if (stat.name == "compute_cap_minor") device.minor = number;
  }

  void read_line(const XPlane& plane, std::string_view message, std::int64_t process) {
    Thread thread{.process = process, .id = 0, .name = {}};
    std::int64_t start = 0;
    std::vector<std::string_view> events;
    std::string_view shown;
    ProtoReader fields(message);
    while (fields.next()) {
      if (fields.number() == 1) thread.id = fields.signed_value();
      if (fields.number() == 2) thread.name = text(fields.bytes());
      if (fields.number() == 3) start = fields.signed_value();
      if (fields.number() == 4) events.push_back(fields.bytes());
      if (fields.number() == 11) shown = fields.bytes();
    }
    damaged_ += fields.damaged() ? 1 : 0;
    if (thread.name.empty()) thread.name = text(shown);
    if (events.empty()) return;
    constexpr std::size_t kMaxLines = 0xffff;
    if (trace_.threads.size() >= kMaxLines || start < 0 || start > kMaxTime) {
      ++lines_left_out_;
      return;
    }
    trace_.threads.push_back(std::move(thread));
    for (const std::string_view event : events) read_event(plane, event, start);
  }

  void read_event(const XPlane& plane, std::string_view message, std::int64_t line_start) {
    HostRecord record;
    LaneWork work;
    std::int64_t offset = 0, length = 0;
    bool is_sum = false;
    ProtoReader fields(message);
    while (fields.next()) {
      if (fields.number() == 1) record.name = name_of(plane, fields.signed_value());
      if (fields.number() == 2) offset = fields.signed_value();
      if (fields.number() == 3) length = fields.signed_value();
      if (fields.number() == 4) read_stat(plane.stat(fields.bytes()), work);
      is_sum |= fields.number() == 5;
    }
    damaged_ += fields.damaged() ? 1 : 0;
    constexpr std::int64_t kMaxPicoseconds = kMaxTime;
    if (is_sum || offset < 0 || length < 0 || offset > kMaxPicoseconds ||
        length > kMaxPicoseconds) {
      ++(is_sum ? sums_ : bad_times_);
      return;
    }
    record.start_ns = line_start + offset / kPicoseconds;
    record.duration_ns = line_start + (offset + length) / kPicoseconds - record.start_ns;
    record.thread = static_cast<std::uint16_t>(trace_.threads.size() - 1);
    latest_ = std::max(latest_, record.start_ns);
    work.host = static_cast<std::uint32_t>(trace_.hosts.size());
    trace_.hosts.push_back(record);
    work_.push_back(work);
  }

  static void read_stat(const XStat& stat, LaneWork& work) {
    if (stat.name == "correlation_id") work.correlation = static_cast<std::uint32_t>(stat.number);
    if (stat.name == "cuda_graph_node_id")
      work.graph_node = static_cast<std::uint64_t>(stat.number);
    if (stat.name == "run_id") work.run = stat.number;
    if (stat.name == "step_num") work.step = stat.number;
    if (stat.name.ends_with("_details")) read_lane_details(stat.text, work);
  }

  NameId name_of(const XPlane& plane, std::int64_t metadata) {
    const auto found = plane.events.find(metadata);
    if (found == plane.events.end()) return nameless_++, NameId{};
    const bool ascii =
        std::all_of(found->second.begin(), found->second.end(), [](char c) { return c >= 0; });
    return ascii ? intern_.intern(found->second) : trace_.names.intern(text(found->second));
  }

  std::string text(std::string_view raw) { return valid_text(raw, invalid_); }

  void write_notes() {
    const auto note = [&](Severity severity, std::string_view text, std::int64_t count,
                          const std::string& example = {}) {
      if (count > 0) trace_.notes.add(severity, text, example, count);
    };
    const std::string damage = bytes_.damage();
    if (stream_.is_cut() || !damage.empty())
      note_cut(trace_.notes, "in a plane", damage, stream_.offset());
    note(Severity::warning, "messages that are damaged, read as far as possible", damaged_);
    note(Severity::warning, "events whose times are impossible, left out", bad_times_);
    note(Severity::warning, "events without a name", nameless_);
    note(Severity::warning, "strings that are not valid UTF-8", invalid_);
    note(Severity::warning, "lines beyond the 65535th or at an impossible time, left out",
         lines_left_out_);
    note(Severity::info, "events that sum up others, left out", sums_);
    note(Severity::info, "planes of neither a host nor a device, left out", other_planes_,
         first_other_plane_);
    if (!has_host_ && !stream_.is_cut()) {
      trace_.notes.add(Severity::warning,
                       "there is no plane of the host: the file is cut off between two planes, or "
                       "only devices were recorded");
    }
    if (!has_device_) {
      trace_.notes.add(Severity::warning,
                       "no device was recorded, only the host: there was none, or its profiler "
                       "(libcupti, rocprofiler) was not found");
    }
  }

  Source& bytes_;
  Trace trace_;
  ProtoStream stream_;
  InternCache intern_;
  std::vector<LaneWork> work_;
  std::map<std::int64_t, std::string> processes_;  ///< Names of planes.
  std::set<std::string> names_;
  std::string first_other_plane_;
  std::int64_t start_of_profile_ = 0;
  std::int64_t latest_ = 0;
  std::int64_t planes_ = 0, other_planes_ = 0, lines_left_out_ = 0, sums_ = 0, bad_times_ = 0;
  std::int64_t nameless_ = 0, invalid_ = 0, damaged_ = 0;
  bool has_device_ = false, has_host_ = false;
};

}  // namespace

/// The file begins with a plane, and the plane with its number or its name.
bool recognizes_xplane(const Sniffed& file) {
  std::string_view rest = file.head;
  if (rest.empty() || rest[0] != '\n') return false;
  rest.remove_prefix(1);
  const auto size = take_varint(rest);
  if (!size || *size == 0) return false;
  ProtoReader fields(rest.substr(0, std::min<std::uint64_t>(*size, rest.size())));
  while (fields.next() && fields.number() <= 2) {
    if (fields.number() == 2) return is_xplane_name(fields.bytes());
    if (fields.wire() != WireType::varint) return false;
  }
  return false;
}

Trace read_xplane(Source& bytes) { return XSpaceReader(bytes).read(); }

Trace read_xplane(const TraceFile& input) {
  const auto bytes = input.open();
  return within(input.path(), [&] { return read_xplane(*bytes); });
}

}  // namespace foretrace
