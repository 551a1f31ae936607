#pragma once

#include <sstream>
#include <string>

#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "foretrace/trace.h"

namespace foretrace {

/// A trace written by hand, in microseconds. Thread 0 is the main thread; threads and streams are
/// made as needed.
class Recording {
 public:
  Recording& host(int thread, HostKind kind, std::string_view name, int start, int duration,
                  std::uint32_t correlation = 0) {
    while (trace_.threads.size() <= static_cast<std::size_t>(thread)) {
      trace_.threads.push_back(
          {.process = 1, .id = static_cast<int>(trace_.threads.size()), .name = {}});
    }
    trace_.hosts.push_back({.start_ns = start * 1000,
                            .duration_ns = duration * 1000,
                            .name = trace_.names.intern(name),
                            .correlation = correlation,
                            .thread = static_cast<std::uint16_t>(thread),
                            .kind = kind});
    return *this;
  }
  Recording& op(int thread, std::string_view name, int start, int duration) {
    return host(thread, HostKind::op, name, start, duration);
  }
  Recording& step(int number, int start, int duration) {
    return host(0, HostKind::annotation, "ProfilerStep#" + std::to_string(number), start, duration);
  }
  Recording& call(int thread, std::string_view name, int start, int duration,
                  std::uint32_t correlation) {
    return host(thread, HostKind::runtime, name, start, duration, correlation);
  }
  Recording& kernel(int stream, std::string_view name, int start, int duration,
                    std::uint32_t correlation) {
    return device(stream, DeviceKind::kernel, CopyDirection::none, name, start, duration,
                  correlation);
  }
  Recording& copy(int stream, CopyDirection direction, std::string_view name, int start,
                  int duration, std::uint32_t correlation) {
    return device(stream, DeviceKind::copy, direction, name, start, duration, correlation);
  }
  Recording& waits_for_event(int stream, int on_stream, std::uint32_t correlation,
                             std::uint32_t recorded_by) {
    trace_.syncs.push_back({.correlation = correlation,
                            .stream = static_cast<std::uint32_t>(stream),
                            .wait_on_stream = static_cast<std::uint32_t>(on_stream),
                            .wait_on_correlation = recorded_by,
                            .kind = SyncKind::stream_wait_event});
    return *this;
  }
  Recording& memory(int thread, int time, std::uint64_t address, std::int64_t bytes) {
    trace_.memory.push_back({.time_ns = time * 1000,
                             .address = address,
                             .bytes = bytes,
                             .thread = static_cast<std::uint16_t>(thread),
                             .device = 0});
    return *this;
  }
  Trace& trace() { return trace_; }

 private:
  Recording& device(int stream, DeviceKind kind, CopyDirection direction, std::string_view name,
                    int start, int duration, std::uint32_t correlation) {
    while (trace_.streams.size() <= static_cast<std::size_t>(stream)) {
      trace_.streams.push_back({.device = 0, .id = static_cast<int>(trace_.streams.size())});
    }
    trace_.devices.push_back({.start_ns = start * 1000,
                              .duration_ns = duration * 1000,
                              .name = trace_.names.intern(name),
                              .correlation = correlation,
                              .stream = static_cast<std::uint16_t>(stream),
                              .kind = kind,
                              .direction = direction});
    return *this;
  }
  Trace trace_;
};

/// One line for each dependency: "before -> after: why +lag (provenance)".
inline std::string waits(const Graph& graph) {
  std::ostringstream out;
  out << "\n";
  graph.each_dependency([&](const Dependency& d) {
    out << graph.name(d.before) << " -> " << graph.name(d.after) << ": "
        << to_string(d.why, graph.names());
    if (d.lag.count() != 0) out << " " << d.lag.count() / 1000 << "us";
    if (d.anchor == Anchor::start) out << " from start";
    out << " (" << to_string(d.provenance) << ")\n";
  });
  return out.str();
}

/// The replay of the inferred graph, as a picture.
inline std::string replayed(Recording& recording) {
  const Inference inference = infer(recording.trace());
  return "\n" + to_ascii(inference.graph, simulate(inference.graph));
}

inline std::string waits(Recording& recording) { return waits(infer(recording.trace()).graph); }

}  // namespace foretrace
