#pragma once

// Turns the events of a Perfetto trace into records. Our own exporter writes arguments from which
// each record is restored; slices of other programs become annotations on the thread of their
// track.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/trace.h"
#include "import/common/launch_shapes.h"
#include "import/kineto/kineto_lanes.h"
#include "import/perfetto/perfetto_event.h"

namespace foretrace {

class PerfettoRecords {
 public:
  explicit PerfettoRecords(Trace& trace) : trace_(trace), lanes_(trace), launches_(trace) {}

  /// Adds the track of a TrackDescriptor message.
  void add_track(std::string_view descriptor);
  void add(const PerfettoEvent& event, std::int64_t time_ns);
  void finish();

  std::int64_t useful() const { return useful_; }

 private:
  struct Track {
    std::uint64_t parent = 0;
    std::string name;
    std::int64_t process = 0, thread = 0;
    bool has_process = false, has_thread = false;
    std::uint32_t number = kNone;  ///< Index into Trace::threads; kNone before the first event.
  };
  /// A slice without an end so far, and its record in one of the tables.
  struct OpenSlice {
    enum class Table : std::uint8_t { hosts, devices, syncs, none } table = Table::none;
    std::size_t row = 0;
    std::int64_t start_ns = 0;
  };

  void begin(const PerfettoEvent& event, std::int64_t time_ns);
  void end(const OpenSlice& slice, std::int64_t time_ns);
  void add_host(const PerfettoEvent& event, HostKind kind, std::int64_t time_ns);
  void add_device(const PerfettoEvent& event, DeviceKind kind, std::int64_t time_ns);
  void add_sync(const PerfettoEvent& event, std::int64_t time_ns);
  void add_instant(const PerfettoEvent& event, std::int64_t time_ns);
  void add_memory(const PerfettoEvent& event, std::int64_t time_ns);
  void add_trace_facts(const PerfettoEvent& event);
  static void read_owner(std::string_view descriptor, Track& track);
  std::uint32_t details(const PerfettoEvent& event);
  std::uint32_t collective(const PerfettoEvent& event);
  NameId text(const PerfettoEvent& event, std::string_view key) {
    return trace_.names.intern(event.text(key));
  }
  std::uint32_t stream(const PerfettoEvent& event, std::string_view device, std::string_view key);
  std::uint16_t thread_of(const PerfettoEvent& event);

  Trace& trace_;
  KinetoLanes lanes_;
  LaunchShapes launches_;
  std::unordered_map<std::uint64_t, Track> tracks_;
  std::unordered_map<std::uint64_t, std::vector<OpenSlice>> open_;
  std::int64_t useful_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t ends_without_begin_ = 0;
  std::int64_t nameless_tracks_ = 0;
};

}  // namespace foretrace
