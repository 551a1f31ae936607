// Turns the nodes of a Chakra file into records.
//
// A device node names the op that launched it, but the launch call is not a node. To represent
// launches as in any other trace, this file adds a call for each device node, at the end of the
// op's own work and without a duration. Before a CPU node that depends on a device node it adds a
// synchronization call.

#include <algorithm>
#include <numeric>

#include "foretrace/error.h"
#include "import/common/times.h"
#include "import/execution_traces/chakra.h"
#include "import/execution_traces/execution_order.h"
#include "import/kineto/kineto_lanes.h"
#include "import/kineto/kineto_trace.h"

namespace foretrace {

namespace {

/// Limit on the sum of all durations, in nanoseconds, so that times cannot overflow.
constexpr std::int64_t kLongest = std::int64_t{1} << 60;

class Builder {
 public:
  Builder(const std::vector<ChakraNode>& nodes, Trace& trace)
      : nodes_(nodes), trace_(trace), lanes_(trace), host_of_(nodes.size(), kNone) {}

  void build() {
    trace_.has_times = any_time();
    const ChakraLinks links = link_nodes(nodes_, trace_.notes);
    times_ = trace_.has_times ? time_nodes(nodes_, links, trace_.notes) : positions();
    add_hosts();
    add_devices(links);
    if (trace_.hosts.empty() && trace_.devices.empty())
      throw TraceError("must contain ops or device work, but has neither");
    if (trace_.has_times) {
      enclose(links);
      add_waits();
      make_times_relative(trace_);
    }
    adjust_tensors();
    lanes_.finish();
    set_process();
    note_untimed_communication();
  }

 private:
  bool any_time() {
    std::int64_t sum = 0;
    bool any = false;
    for (const ChakraNode& node : nodes_) {
      any = any || node.start_ns > 0 || node.duration_ns > 0;
      sum += std::min(node.duration_ns, kLongest);
      if (sum >= kLongest) throw TraceError("must have durations of less than 36 years in total");
    }
    if (!any) {
      trace_.notes.add(Severity::info,
                       "the file has no times, only the order and the sizes of its nodes");
    }
    return any;
  }

  /// Positions instead of times; see Trace::has_times.
  ChakraTimes positions() const {
    ChakraTimes times;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      times.start.push_back(2 * static_cast<std::int64_t>(i));
      times.finish.push_back(times.start[i] + 1);
    }
    return times;
  }

  void add_hosts() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const ChakraNode& node = nodes_[i];
      if (node.on_device || node.is_frame) continue;
      HostRecord record;
      record.start_ns = times_.start[i];
      record.duration_ns = times_.finish[i] - times_.start[i];
      record.name = node.name;
      record.kind = node.scope == kUserScope || node.type == ChakraType::metadata
                        ? HostKind::annotation
                        : HostKind::op;
      record.thread = lanes_.thread(0, node.thread);
      record.details = node.details;
      host_of_[i] = static_cast<std::uint32_t>(trace_.hosts.size());
      trace_.hosts.push_back(record);
    }
  }

  void add_devices(const ChakraLinks& links) {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].on_device) continue;
      DeviceRecord record = device_record(nodes_[i]);
      record.start_ns = times_.start[i];
      record.duration_ns = times_.finish[i] - times_.start[i];
      const std::uint32_t launcher = links.launcher[i];
      if (launcher != kNone && host_of_[launcher] != kNone) {
        const std::int64_t end = std::min(times_.finish[launcher], times_.start[i]);
        record.correlation = add_call("launch", launcher, std::max(end, times_.start[launcher]), 0);
      }
      trace_.devices.push_back(record);
    }
  }

  DeviceRecord device_record(const ChakraNode& node) {
    DeviceRecord record;
    record.name = node.name;
    record.stream = lanes_.stream(node.device, node.stream);
    if (node.collective != kNone) record.details = node.collective;
    const std::string_view name = trace_.names[node.name];
    if (name.starts_with("Memcpy") || node.type == ChakraType::load ||
        node.type == ChakraType::store) {
      record.kind = DeviceKind::copy;
      record.direction = node.type == ChakraType::load    ? CopyDirection::in
                         : node.type == ChakraType::store ? CopyDirection::out
                                                          : copy_direction(name);
      record.pinned_host = name.find("Pinned") != std::string_view::npos;
      record.bytes = node.bytes;
      record.details = kNone;
    } else if (name.starts_with("Memset")) {
      record.kind = DeviceKind::fill;
      record.bytes = node.bytes;
      record.details = kNone;
    }
    return record;
  }

  /// Adds a call on the thread of `node` and returns its correlation id.
  std::uint32_t add_call(std::string_view name, std::uint32_t node, std::int64_t start,
                         std::int64_t duration) {
    HostRecord call;
    call.start_ns = start;
    call.duration_ns = duration;
    call.name = trace_.names.intern(name);
    call.kind = HostKind::runtime;
    call.thread = lanes_.thread(0, nodes_[node].thread);
    call.correlation = ++calls_;
    trace_.hosts.push_back(call);
    return call.correlation;
  }

  /// Extends each op to the end of the last op that it called: the converter writes only an op's
  /// own time as its duration.
  void enclose(const ChakraLinks& links) {
    std::vector<std::uint32_t> order(nodes_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return times_.start[a] < times_.start[b];
    });
    std::vector<std::vector<std::uint32_t>> open(trace_.threads.size());
    for (const std::uint32_t i : order) {
      if (host_of_[i] == kNone) continue;
      std::vector<std::uint32_t>& stack = open[trace_.hosts[host_of_[i]].thread];
      while (!stack.empty() && stack.back() != links.parent[i]) close(stack);
      stack.push_back(i);
    }
    for (std::vector<std::uint32_t>& stack : open) {
      while (!stack.empty()) close(stack);
    }
  }

  /// Ends the innermost open op and extends the one around it to the same end.
  void close(std::vector<std::uint32_t>& stack) {
    const HostRecord& inner = trace_.hosts[host_of_[stack.back()]];
    const std::int64_t end = inner.start_ns + inner.duration_ns;
    stack.pop_back();
    if (stack.empty()) return;
    HostRecord& outer = trace_.hosts[host_of_[stack.back()]];
    outer.duration_ns = std::max(outer.duration_ns, end - outer.start_ns);
  }

  void add_waits() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const std::uint32_t awaited = times_.awaited[i];
      if (awaited == kNone || host_of_[i] == kNone) continue;
      SyncRecord sync;
      sync.start_ns = times_.ready[i];
      sync.duration_ns = times_.start[i] - times_.ready[i];
      sync.kind = SyncKind::stream;
      sync.stream = lanes_.stream(nodes_[awaited].device, nodes_[awaited].stream);
      sync.correlation = add_call("wait for the device", i, sync.start_ns, sync.duration_ns);
      trace_.syncs.push_back(sync);
    }
  }

  void adjust_tensors() {
    for (TensorRecord& tensor : trace_.tensors) tensor.host = host_of_[tensor.host];
    std::erase_if(trace_.tensors, [](const TensorRecord& tensor) { return tensor.host == kNone; });
  }

  void set_process() {
    const auto process = trace_.metadata.find("pid");
    if (process == trace_.metadata.end()) return;
    std::int64_t id = 0;
    for (const char c : process->second) {
      if (c < '0' || c > '9' || id > 1'000'000'000) return;
      id = id * 10 + (c - '0');
    }
    for (Thread& thread : trace_.threads) thread.process = id;
  }

  void note_untimed_communication() {
    if (!trace_.has_times) return;
    const auto untimed = std::count_if(nodes_.begin(), nodes_.end(), [](const ChakraNode& node) {
      return node.on_device && node.is_communication() && node.duration_ns == 0;
    });
    if (untimed > 0) {
      trace_.notes.add(Severity::warning, "communication without a duration, taken to last no time",
                       {}, untimed);
    }
  }

  const std::vector<ChakraNode>& nodes_;
  Trace& trace_;
  KinetoLanes lanes_;
  ChakraTimes times_;
  std::vector<std::uint32_t> host_of_;
  std::uint32_t calls_ = 0;
};

/// Decides which nodes run on the device and on which stream. Files written for simulators do not
/// mark CPU nodes; then all work is device work.
void decide_places(std::vector<ChakraNode>& nodes, Notes& notes) {
  const bool any = std::any_of(nodes.begin(), nodes.end(),
                               [](const ChakraNode& node) { return node.has_cpu_flag; });
  std::int64_t without_stream = 0;
  for (ChakraNode& node : nodes) {
    if (!any) node.on_device = node.type >= ChakraType::load;
    if (!node.on_device) continue;
    if (node.stream < 0 && node.thread_is_stream) node.stream = node.thread;
    if (node.stream >= 0) continue;
    ++without_stream;
    node.stream = node.is_communication() ? 1 : 0;
  }
  if (without_stream > 0) {
    notes.add(Severity::info,
              "device nodes without a stream: communication is put on a stream of its own", {},
              without_stream);
  }
}

}  // namespace

void build_chakra_trace(std::vector<ChakraNode> nodes, Trace& trace) {
  std::vector<std::uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return nodes[a].id < nodes[b].id; });
  std::vector<ChakraNode> sorted;
  std::vector<std::uint32_t> place(nodes.size());
  std::int64_t repeated = 0;
  for (const std::uint32_t i : order) {
    if (!sorted.empty() && sorted.back().id == nodes[i].id) ++repeated;
    place[i] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(nodes[i]));
  }
  for (TensorRecord& tensor : trace.tensors) tensor.host = place[tensor.host];
  if (repeated > 0) {
    trace.notes.add(Severity::warning, "nodes with the id of another node", {}, repeated);
  }
  decide_places(sorted, trace.notes);
  Builder(sorted, trace).build();
}

}  // namespace foretrace
