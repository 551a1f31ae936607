#pragma once

// The records of a trace as lines of text that depend neither on the order of records nor on
// numbers that have a meaning only inside one Trace: two traces with the same lines have the same
// content.

#include <algorithm>
#include <string>
#include <vector>

#include "foretrace/trace.h"
#include "trace/launch_shape.h"

namespace foretrace {

class RecordsAsText {
 public:
  explicit RecordsAsText(const Trace& trace) : trace_(trace) {}

  /// Records of one table ("hosts"), sorted. Times are absolute.
  std::vector<std::string> table(std::string_view what) {
    lines_.clear();
    if (what == "hosts") each(trace_.hosts);
    if (what == "devices") each(trace_.devices);
    if (what == "syncs") each(trace_.syncs);
    if (what == "memory") each(trace_.memory);
    if (what == "links") each(trace_.links);
    if (what == "properties") each(trace_.properties);
    std::sort(lines_.begin(), lines_.end());
    return lines_;
  }

  static const std::vector<std::string_view>& tables() {
    static const std::vector<std::string_view> names = {"hosts",  "devices", "syncs",
                                                        "memory", "links",   "properties"};
    return names;
  }

 private:
  template <class Rows>
  void each(const Rows& rows) {
    for (const auto& row : rows) {
      line_.clear();
      write(row);
      lines_.push_back(line_);
    }
  }

  void add(std::string_view text) {
    line_ += text;
    line_ += '|';
  }
  template <class Number>
  requires std::is_integral_v<Number>
  void add(Number number) { add(std::to_string(number)); }
  void add(NameId id) { add(trace_.names[id]); }
  void add_time(std::int64_t ns) { add(trace_.origin_ns + ns); }
  void add_thread(std::uint16_t thread) {
    const Thread& known = trace_.threads.at(thread);
    add(known.process), add(known.id), add(known.name);
  }
  void add_stream(std::uint32_t stream) {
    if (stream == kNone) return add("none");
    add(trace_.streams.at(stream).device), add(trace_.streams.at(stream).id);
  }

  void write(const HostRecord& r) {
    add_time(r.start_ns), add(r.duration_ns), add(r.name), add(r.correlation), add(r.external);
    add_thread(r.thread), add(to_string(r.kind)), add(r.nests ? "" : "crosses");
    const OpDetails d = r.details == kNone ? OpDetails{} : trace_.op_details.at(r.details);
    add(d.shapes), add(d.types), add(d.values), add(d.stack), add(d.sequence);
    add(d.forward_thread), add(d.python_id), add(d.python_parent), add(d.record_function);
  }
  void write(const DeviceRecord& r) {
    add_time(r.start_ns), add(r.duration_ns), add(r.name), add(r.bytes), add(r.graph_node);
    add(r.correlation), add(r.external), add(r.grid), add(r.block), add_stream(r.stream);
    add(to_string(r.kind)), add(to_string(r.direction)), add(r.pinned_host ? "pinned" : "");
    const LaunchShape shape = launch_shape(trace_, r);
    each_launch_field([&](std::string_view, auto member) { add(shape.*member); });
    if (r.details == kNone) return;
    const CollectiveDetails& d = trace_.collectives.at(r.details);
    add(d.collective), add(d.dtype), add(d.group), add(d.ranks), add(d.in_elements);
    add(d.out_elements), add(d.group_size), add(d.sequence);
  }
  void write(const SyncRecord& r) {
    add_time(r.start_ns), add(r.duration_ns), add(r.correlation), add_stream(r.stream);
    add_stream(r.wait_on_stream), add(r.wait_on_correlation), add(r.event), add(to_string(r.kind));
  }
  void write(const MemoryRecord& r) {
    add_time(r.time_ns), add(r.address), add(r.bytes), add(r.total_allocated);
    add(r.total_reserved), add_stream(r.stream), add(r.stack), add_thread(r.thread);
    add(r.device), add(to_string(r.action));
  }
  void write(const LinkRecord& r) {
    add(r.id), add_time(r.time_ns), add_thread(r.thread), add(r.is_end ? "end" : "begin");
  }
  void write(const Device& r) {
    add(r.ordinal), add(r.name), add(r.memory_bytes), add(r.multiprocessors), add(r.major);
    add(r.minor);
  }

  const Trace& trace_;
  std::string line_;
  std::vector<std::string> lines_;
};

/// The first line of a table that only one of the two traces has; empty if there is none.
inline std::string first_difference(const Trace& a, const Trace& b) {
  for (const std::string_view table : RecordsAsText::tables()) {
    const std::vector<std::string> left = RecordsAsText(a).table(table);
    const std::vector<std::string> right = RecordsAsText(b).table(table);
    const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
    if (l == left.end() && r == right.end()) continue;
    return std::string(table) + " (" + std::to_string(left.size()) + " and " +
           std::to_string(right.size()) + ")\n  " + (l == left.end() ? "nothing" : *l) + "\n  " +
           (r == right.end() ? "nothing" : *r);
  }
  return {};
}

}  // namespace foretrace
