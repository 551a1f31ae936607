// Joins the records of a spool: ranges with their ends, waits with the events they wait for, calls
// with those inside them, collectives with NCCL's facts about them, copies of graphs with their
// originals.

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "import/spool/spool.h"
#include "trace/step_name.h"

namespace foretrace {

void SpoolReader::close_ranges() {
  const auto close = [&](std::uint32_t record) {
    // A step that did not end says nothing about how long steps take.
    if (step_name(trace_.names[trace_.hosts[record].name])) {
      ++open_steps_;
      dropped_.push_back(record);
      return;
    }
    ++open_ranges_;
    trace_.hosts[record].duration_ns =
        std::max<std::int64_t>(0, last_time_ - trace_.hosts[record].start_ns);
  };
  for (const Thread& thread : threads_) {
    for (const OpenRange& range : thread.ranges) close(range.record);
  }
  for (const auto& [id, record] : started_) close(record);
  stray_ends_ += static_cast<std::int64_t>(early_ends_.size());
}

/// The runtime works through driver calls. One record for both is enough, as in other profilers;
/// work launched by the inner one counts as launched by the outer one.
void SpoolReader::join_inner_calls() {
  if (inner_.empty()) return;
  std::unordered_map<std::uint32_t, std::uint32_t> outer_of;
  for (const InnerCall& call : inner_) {
    dropped_.push_back(call.inner);
    const std::uint32_t inner = trace_.hosts[call.inner].correlation;
    const std::uint32_t outer = trace_.hosts[call.outer].correlation;
    if (inner != 0 && outer != 0 && inner != outer) outer_of[inner] = outer;
  }
  const auto lift = [&](std::uint32_t& correlation) {
    const auto found = outer_of.find(correlation);
    if (found != outer_of.end()) correlation = found->second;
  };
  if (!outer_of.empty()) {
    for (DeviceRecord& record : trace_.devices) lift(record.correlation);
    for (SyncRecord& record : trace_.syncs) lift(record.correlation);
    for (spool::Event& event : events_) lift(event.correlation);
  }
  trace_.notes.add(Severity::info, "driver calls inside of runtime calls, counted as one", {},
                   static_cast<std::int64_t>(inner_.size()));
}

void SpoolReader::drop_records() {
  if (dropped_.empty()) return;
  std::vector<bool> drop(trace_.hosts.size());
  for (const std::uint32_t record : dropped_) drop[record] = true;
  std::vector<std::uint32_t> moved(trace_.hosts.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < trace_.hosts.size(); ++i) {
    moved[i] = static_cast<std::uint32_t>(kept);
    if (!drop[i]) trace_.hosts[kept++] = trace_.hosts[i];
  }
  trace_.hosts.resize(kept);
  std::erase_if(collectives_, [&](const NamedCollective& named) { return drop[named.record]; });
  for (NamedCollective& named : collectives_) named.record = moved[named.record];
}

/// By the number of the recording if CUPTI reports it; else the last recording of that event before
/// the wait.
void SpoolReader::resolve_events() {
  if (waits_.empty()) return;
  std::unordered_map<std::uint64_t, std::uint32_t> by_sync_id;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    if (events_[i].sync_id != 0) by_sync_id[events_[i].sync_id] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::uint32_t> order(events_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  const auto key = [&](std::uint32_t i) {
    return std::tuple(events_[i].event, events_[i].correlation);
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    const spool::Sync& wait = waits_[i];
    const spool::Event* found = nullptr;
    const auto exact = by_sync_id.find(wait.sync_id);
    if (wait.sync_id != 0 && exact != by_sync_id.end()) {
      found = &events_[exact->second];
    } else {
      const auto behind = std::upper_bound(
          order.begin(), order.end(), std::tuple(wait.event, wait.correlation),
          [&](const auto& wanted, std::uint32_t other) { return wanted < key(other); });
      if (behind != order.begin() && events_[*std::prev(behind)].event == wait.event)
        found = &events_[*std::prev(behind)];
    }
    if (found == nullptr) continue;
    SyncRecord& record = trace_.syncs[wait_records_[i]];
    const auto device = device_of_context_.find(found->context);
    record.wait_on_stream = stream(device == device_of_context_.end() ? 0 : device->second,
                                   found->context, found->stream);
    record.wait_on_correlation = found->correlation;
  }
}

/// A graph is made executable as a copy; the edges of the original hold for each copy.
void SpoolReader::clone_edges() {
  if (clones_.empty() || trace_.graph_edges.empty()) return;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, std::uint64_t>> copies;
  std::vector<std::uint32_t> order;
  for (const spool::GraphClone& clone : clones_) {
    auto [copy, added] = copies.try_emplace(clone.graph);
    if (added) order.push_back(clone.graph);
    copy->second[clone.original] = clone.node;
  }
  std::unordered_set<std::uint64_t> told;
  for (const GraphEdge& edge : trace_.graph_edges) told.insert(edge.after);
  // A copy may be the original of the next, so its edges join those that are looked through.
  for (const std::uint32_t graph : order) {
    const auto& node_of = copies[graph];
    const std::size_t count = trace_.graph_edges.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto before = node_of.find(trace_.graph_edges[i].before);
      const auto after = node_of.find(trace_.graph_edges[i].after);
      if (before == node_of.end() || after == node_of.end() || told.contains(after->second))
        continue;
      trace_.graph_edges.push_back({before->second, after->second});
    }
  }
}

namespace {

/// A node of a graph as it ran in one launch.
struct NodeRun {
  std::uint64_t node = 0;
  std::uint32_t correlation = 0;
  std::int64_t start = 0, finish = 0;
};

std::vector<NodeRun> node_runs(const Trace& trace) {
  std::vector<NodeRun> runs;
  for (const DeviceRecord& record : trace.devices) {
    if (record.graph_node == 0) continue;
    runs.push_back({record.graph_node, record.correlation, record.start_ns,
                    record.start_ns + record.duration_ns});
  }
  std::sort(runs.begin(), runs.end(), [](const NodeRun& a, const NodeRun& b) {
    return std::pair(a.node, a.correlation) < std::pair(b.node, b.correlation);
  });
  return runs;
}

}  // namespace

/// CUPTI's documentation does not say which of the two nodes of an edge waits. The times show it:
/// the waiting one starts when the other is done.
void SpoolReader::orient_edges() {
  if (trace_.graph_edges.empty()) return;
  const std::vector<NodeRun> runs = node_runs(trace_);
  const auto runs_of = [&](std::uint64_t node) {
    return std::equal_range(runs.begin(), runs.end(), NodeRun{.node = node},
                            [](const NodeRun& a, const NodeRun& b) { return a.node < b.node; });
  };
  std::int64_t as_recorded = 0;
  std::int64_t reversed = 0;
  for (const GraphEdge& edge : trace_.graph_edges) {
    auto [before, before_end] = runs_of(edge.before);
    auto [after, after_end] = runs_of(edge.after);
    while (before != before_end && after != after_end) {
      if (before->correlation == after->correlation) {
        as_recorded += before->finish <= after->start ? 1 : 0;
        reversed += after->finish <= before->start ? 1 : 0;
      }
      before->correlation <= after->correlation ? ++before : ++after;
    }
  }
  if (reversed <= as_recorded) return;
  for (GraphEdge& edge : trace_.graph_edges) std::swap(edge.before, edge.after);
}

namespace {

std::int64_t field(const nlohmann::json& payload, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = payload.find(name);
    if (found != payload.end() && found->is_number_integer()) return found->get<std::int64_t>();
  }
  return 0;
}

/// Something that a thread did, and its place in the list that it is of.
struct OnThread {
  std::uint16_t thread;
  std::int64_t time;
  std::uint32_t place;
};

void sort_by_thread(std::vector<OnThread>& all) {
  std::sort(all.begin(), all.end(), [](const OnThread& a, const OnThread& b) {
    return std::pair(a.thread, a.time) < std::pair(b.thread, b.time);
  });
}

/// The calls that launched NCCL's kernels, with the kernel's place among the device records.
std::vector<OnThread> launches_of_collectives(const Trace& trace) {
  std::unordered_map<std::uint32_t, std::uint32_t> kernels;  // Correlation to device record.
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    const std::string_view name = trace.names[trace.devices[i].name];
    if (name.find("nccl") != std::string_view::npos)
      kernels[trace.devices[i].correlation] = static_cast<std::uint32_t>(i);
  }
  std::vector<OnThread> launches;
  for (const HostRecord& call : trace.hosts) {
    if (!is_call(call.kind)) continue;
    const auto found = kernels.find(call.correlation);
    if (found != kernels.end()) launches.push_back({call.thread, call.start_ns, found->second});
  }
  sort_by_thread(launches);
  return launches;
}

}  // namespace

/// Whether the range says what a collective moves; adds that to the kernel's total.
bool SpoolReader::add_collective(const NamedCollective& named, CollectiveDetails& details) {
  const nlohmann::json payload = nlohmann::json::parse(texts_[named.payload], nullptr, false);
  if (!payload.is_object()) return false;
  const std::int64_t size = field(payload, {"Message size [bytes]", "bytes", "count"});
  if (__builtin_add_overflow(details.in_elements, size, &details.in_elements))
    details.in_elements = std::numeric_limits<std::int64_t>::max();
  details.out_elements = details.in_elements;
  const std::int64_t group = field(payload, {"NCCL communicator ID", "commHash", "comm"});
  if (group != 0) details.group = trace_.names.intern(std::to_string(group));
  const std::string_view whole = trace_.names[trace_.hosts[named.record].name];
  details.collective = trace_.names.intern(whole.substr(whole.find(':') + 1));
  return true;
}

/// NCCL says in its ranges how much each collective moves; the kernel is launched in the range, or
/// at the end of the group that it is part of. So a kernel does all that its thread has asked for
/// since the one before.
void SpoolReader::describe_collectives() {
  if (collectives_.empty()) return;
  std::vector<OnThread> asked;
  for (std::size_t i = 0; i < collectives_.size(); ++i) {
    const HostRecord& range = trace_.hosts[collectives_[i].record];
    asked.push_back({range.thread, range.start_ns, static_cast<std::uint32_t>(i)});
  }
  sort_by_thread(asked);
  auto next = asked.begin();
  for (const OnThread& launch : launches_of_collectives(trace_)) {
    while (next != asked.end() && next->thread < launch.thread) ++next;
    CollectiveDetails details;
    bool any = false;
    for (; next != asked.end() && next->thread == launch.thread && next->time <= launch.time;
         ++next) {
      any = add_collective(collectives_[next->place], details) || any;
    }
    if (!any) continue;
    details.dtype = trace_.names.intern("Byte");
    trace_.devices[launch.place].details = static_cast<std::uint32_t>(trace_.collectives.size());
    trace_.collectives.push_back(details);
  }
}

}  // namespace foretrace
