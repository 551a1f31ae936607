#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <unordered_set>

#include "base/parse_number.h"
#include "foretrace/error.h"
#include "foretrace/trace_part.h"
#include "trace/each_name.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class Cutter {
 public:
  Cutter(const Trace& trace, Window window) : from_(trace), window_(window) {}

  Trace cut() {
    copy_trace_facts();
    find_correlations();
    cut_hosts();
    cut_devices();
    cut_syncs();
    cut_memory();
    cut_links();
    cut_structure();
    keep_used_names();
    start_at_zero();
    return std::move(to_);
  }

 private:
  bool overlaps(std::int64_t start, std::int64_t duration) const {
    const bool begins_inside = start >= window_.begin_ns && start < window_.end_ns;
    return begins_inside || (start < window_.begin_ns && start + duration > window_.begin_ns);
  }
  bool is_inside(std::int64_t start, std::int64_t duration) const {
    return start >= window_.begin_ns && start + duration <= window_.end_ns;
  }
  bool is_marker(NameId name) const { return from_.names[name].starts_with(kProfilerStep); }

  void copy_trace_facts() {
    to_.threads = from_.threads;
    to_.streams = from_.streams;
    to_.properties = from_.properties;
    to_.rank = from_.rank;
    to_.world_size = from_.world_size;
    to_.rank_is_known = from_.rank_is_known;
    to_.origin_ns = from_.origin_ns;
    to_.tick_ns = from_.tick_ns;
    to_.has_times = from_.has_times;
    to_.format = from_.format;
    to_.metadata = from_.metadata;
    to_.notes = from_.notes;
    to_.files = from_.files;
  }

  /// Finds the correlation ids of calls and of device work in the window.
  void find_correlations() {
    for (const HostRecord& record : from_.hosts) {
      if (is_call(record.kind) && overlaps(record.start_ns, record.duration_ns))
        called_.insert(record.correlation);
    }
    called_.erase(0);
    find_queues();
    for (const DeviceRecord& record : from_.devices) {
      if (is_kept(record)) launched_.insert(record.correlation);
    }
    launched_.erase(0);
  }

  /// Finds where each stream has worked off what was queued before the window: the device may be
  /// many steps behind the host, and that work is why what the window launches begins late.
  void find_queues() {
    queued_until_.assign(from_.streams.size(), kNever);
    for (const DeviceRecord& record : from_.devices) {
      if (called_.count(record.correlation) == 0) continue;
      std::int64_t& until = queued_until_[record.stream];
      until = std::min(until, record.start_ns);
    }
    for (std::int64_t& until : queued_until_)
      until = until == kNever ? window_.end_ns : std::max(until, window_.end_ns);
  }

  bool is_queued(const DeviceRecord& record) const {
    return record.start_ns >= window_.end_ns && record.start_ns < queued_until_[record.stream];
  }

  bool is_kept(const DeviceRecord& record) const {
    // No call launches a range on a device, so only its times decide.
    if (record.kind == DeviceKind::annotation && is_marker(record.name))
      return is_inside(record.start_ns, record.duration_ns);
    return overlaps(record.start_ns, record.duration_ns) || is_queued(record) ||
           called_.count(record.correlation) > 0;
  }

  void cut_hosts() {
    host_at_.assign(from_.tensors.empty() ? 0 : from_.hosts.size(), kNone);
    for (std::size_t i = 0; i < from_.hosts.size(); ++i) {
      HostRecord record = from_.hosts[i];
      const bool launches = is_call(record.kind) && launched_.count(record.correlation) > 0;
      if (!launches && !overlaps(record.start_ns, record.duration_ns)) continue;
      if (is_marker(record.name) && !is_inside(record.start_ns, record.duration_ns)) continue;
      if (!is_call(record.kind)) clip(record);
      if (record.details != kNone) {
        to_.op_details.push_back(from_.op_details[record.details]);
        record.details = static_cast<std::uint32_t>(to_.op_details.size() - 1);
      }
      if (!host_at_.empty()) host_at_[i] = static_cast<std::uint32_t>(to_.hosts.size());
      to_.hosts.push_back(record);
    }
  }

  void clip(HostRecord& record) const {
    const std::int64_t finish = std::min(record.start_ns + record.duration_ns, window_.end_ns);
    record.start_ns = std::max(record.start_ns, window_.begin_ns);
    record.duration_ns = std::max<std::int64_t>(finish - record.start_ns, 0);
  }

  void cut_devices() {
    std::vector<std::uint32_t> launch_at(from_.launches.size(), kNone);
    for (const DeviceRecord& record : from_.devices) {
      if (!is_kept(record)) continue;
      to_.devices.push_back(record);
      if (record.graph_node != 0) nodes_.insert(record.graph_node);
      if (record.launch != kNone) {
        std::uint32_t& launch = launch_at[record.launch];
        if (launch == kNone) {
          launch = static_cast<std::uint32_t>(to_.launches.size());
          to_.launches.push_back(from_.launches[record.launch]);
        }
        to_.devices.back().launch = launch;
      }
      if (record.details == kNone) continue;
      to_.collectives.push_back(from_.collectives[record.details]);
      to_.devices.back().details = static_cast<std::uint32_t>(to_.collectives.size() - 1);
    }
  }

  void cut_syncs() {
    for (const SyncRecord& record : from_.syncs) {
      if (overlaps(record.start_ns, record.duration_ns) || called_.count(record.correlation) > 0)
        to_.syncs.push_back(record);
    }
  }

  void cut_memory() {
    bool reaches_end = true;
    for (const MemoryRecord& record : from_.memory) {
      if (overlaps(record.time_ns, 0)) to_.memory.push_back(record);
      reaches_end = reaches_end && record.time_ns < window_.end_ns;
    }
    // Segments and blocks describe the state at the end of the recording.
    if (!reaches_end) return;
    to_.segments = from_.segments;
    to_.blocks = from_.blocks;
  }

  /// Keeps a link only if both its ends are in the window.
  void cut_links() {
    std::map<std::int64_t, int> ends;
    for (const LinkRecord& record : from_.links) {
      if (overlaps(record.time_ns, 0)) ends[record.id] |= record.is_end ? 2 : 1;
    }
    for (const LinkRecord& record : from_.links) {
      if (overlaps(record.time_ns, 0) && ends[record.id] == 3) to_.links.push_back(record);
    }
  }

  void cut_structure() {
    for (const GraphEdge& edge : from_.graph_edges) {
      if (nodes_.count(edge.before) > 0 && nodes_.count(edge.after) > 0)
        to_.graph_edges.push_back(edge);
    }
    for (const CapturedNode& node : from_.captured) {
      if (nodes_.count(node.node) > 0) to_.captured.push_back(node);
    }
    for (TensorRecord tensor : from_.tensors) {
      if (host_at_[tensor.host] == kNone) continue;
      tensor.host = host_at_[tensor.host];
      to_.tensors.push_back(tensor);
    }
  }

  void keep_used_names() {
    std::vector<NameId> renamed(from_.names.size(), NameId{});
    each_name(to_, [&](NameId& id) {
      NameId& known = renamed[static_cast<std::size_t>(id)];
      if (known == NameId{}) known = to_.names.intern(from_.names[id]);
      id = known;
    });
  }

  void start_at_zero() {
    std::int64_t first = kNever;
    each_time([&](std::int64_t time) { first = std::min(first, time); });
    if (first == kNever) {
      throw Error(fmt::format("the window from {} to {} contains no record",
                              to_text(Nanoseconds(window_.begin_ns)),
                              to_text(Nanoseconds(window_.end_ns))));
    }
    each_time([&](std::int64_t& time) { time -= first; });
    to_.origin_ns += first;
  }

  template <class Visit>
  void each_time(Visit&& visit) {
    for (HostRecord& record : to_.hosts) visit(record.start_ns);
    for (DeviceRecord& record : to_.devices) visit(record.start_ns);
    for (SyncRecord& record : to_.syncs) visit(record.start_ns);
    for (MemoryRecord& record : to_.memory) visit(record.time_ns);
    for (LinkRecord& record : to_.links) visit(record.time_ns);
  }

  const Trace& from_;
  Window window_;
  Trace to_;
  std::unordered_set<std::uint32_t> called_;    ///< Correlation ids of calls in the window.
  std::unordered_set<std::uint32_t> launched_;  ///< Correlation ids of device work that is kept.
  std::vector<std::int64_t> queued_until_;      ///< By stream; never before the window's end.
  std::unordered_set<std::uint64_t> nodes_;     ///< Nodes of CUDA graphs that stay.
  std::vector<std::uint32_t> host_at_;  ///< New index of each host record; empty without tensors.
};

std::int64_t step_number(std::string_view text, const std::string& whole) {
  const auto number = parse_number<std::int64_t>(text);
  if (!number || *number < 0)
    throw Error(fmt::format("must be a number or a range such as 3-5, got '{}'{}", whole,
                            whole.ends_with('k') || whole.ends_with('M')
                                ? "; --total-steps says how long a whole training takes"
                                : ""));
  return *number;
}

}  // namespace

Trace cut(const Trace& trace, Window window) {
  if (window.end_ns <= window.begin_ns) throw Error("the window must end after its start");
  return Cutter(trace, window).cut();
}

StepRange parse_steps(const std::string& text) {
  const std::size_t dash = text.find('-');
  const std::string_view whole = text;
  const StepRange steps{step_number(whole.substr(0, dash), text),
                        step_number(dash == text.npos ? whole : whole.substr(dash + 1), text)};
  if (steps.last < steps.first)
    throw Error(fmt::format("must not end before it starts, got '{}'", text));
  return steps;
}

Window parse_window(const std::string& text) {
  const std::size_t dash = text.find('-');
  if (dash == 0 || dash == text.npos || dash + 1 == text.size())
    throw Error(fmt::format(
        "must be two times since the start of the trace, such as 100ms-250ms, got '{}'", text));
  const Window window{parse_time(text.substr(0, dash)).count(),
                      parse_time(text.substr(dash + 1)).count()};
  if (window.end_ns <= window.begin_ns)
    throw Error(fmt::format("must end after its start, got '{}'", text));
  return window;
}

std::optional<Window> window_of_steps(const Trace& trace, StepRange wanted) {
  std::map<std::int64_t, Window> steps;
  for (const HostRecord& record : trace.hosts) {
    std::string_view name = trace.names[record.name];
    if (!name.starts_with(kProfilerStep)) continue;
    name.remove_prefix(kProfilerStep.size());
    const auto number = parse_number<std::int64_t>(name);
    if (!number) continue;
    const std::int64_t finish = record.start_ns + record.duration_ns;
    const auto [step, added] = steps.try_emplace(*number, Window{record.start_ns, finish});
    if (added) continue;
    step->second.begin_ns = std::min(step->second.begin_ns, record.start_ns);
    step->second.end_ns = std::max(step->second.end_ns, finish);
  }
  if (steps.empty()) return std::nullopt;
  if (steps.count(wanted.first) == 0 || steps.count(wanted.last) == 0) {
    throw Error(fmt::format("must be between {} and {}, the steps of this trace, got {}-{}",
                            steps.begin()->first, steps.rbegin()->first, wanted.first,
                            wanted.last));
  }
  return Window{steps[wanted.first].begin_ns, steps[wanted.last].end_ns};
}

void keep_part(Trace& trace, const Part& part) {
  if (part.window) trace = within("--window", [&] { return cut(trace, *part.window); });
  if (!part.steps) return;
  const auto window = within("--steps", [&] {
    const auto marked = window_of_steps(trace, *part.steps);
    if (!marked) {
      throw Error(
          "must be steps that the trace marks, but it marks none; use --window to take a part by "
          "time, or convert --steps to find its steps");
    }
    return *marked;
  });
  trace = cut(trace, window);
}

}  // namespace foretrace
