#include "import/spool/spool_joins.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/json_text.h"

namespace foretrace {

namespace {

/// Merges driver calls with the runtime calls that make them, as other profilers do. Work that a
/// driver call launched counts as launched by the runtime call.
void join_inner_calls(SpoolJoins& joins, SpoolIndex& index, Trace& trace) {
  if (joins.inner.empty()) return;
  std::unordered_map<std::uint32_t, std::uint32_t> outer_of;
  for (const InnerCall& call : joins.inner) {
    joins.dropped.push_back(call.inner);
    const std::uint32_t inner = trace.hosts[call.inner].correlation;
    const std::uint32_t outer = trace.hosts[call.outer].correlation;
    if (inner != 0 && outer != 0 && inner != outer) outer_of[inner] = outer;
  }
  const auto lift = [&](std::uint32_t& correlation) {
    const auto found = outer_of.find(correlation);
    if (found != outer_of.end()) correlation = found->second;
  };
  if (!outer_of.empty()) {
    for (DeviceRecord& record : trace.devices) lift(record.correlation);
    for (SyncRecord& record : trace.syncs) lift(record.correlation);
    for (spool::Event& event : index.events) lift(event.correlation);
  }
  trace.notes.add(Severity::info, "driver calls inside runtime calls, merged with them", {},
                  static_cast<std::int64_t>(joins.inner.size()));
}

void drop_records(SpoolJoins& joins, Trace& trace) {
  if (joins.dropped.empty()) return;
  std::vector<bool> drop(trace.hosts.size());
  for (const std::uint32_t record : joins.dropped) drop[record] = true;
  std::vector<std::uint32_t> moved(trace.hosts.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    moved[i] = static_cast<std::uint32_t>(kept);
    if (!drop[i]) trace.hosts[kept++] = trace.hosts[i];
  }
  trace.hosts.resize(kept);
  std::erase_if(joins.collectives,
                [&](const NamedCollective& named) { return drop[named.record]; });
  for (NamedCollective& named : joins.collectives) named.record = moved[named.record];
}

/// Adds edges to copies of graphs. Instantiating a graph copies it, and each copy has the edges of
/// its original.
void clone_edges(const std::vector<spool::GraphClone>& clones, Trace& trace) {
  if (clones.empty() || trace.graph_edges.empty()) return;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, std::uint64_t>> copies;
  std::vector<std::uint32_t> order;
  for (const spool::GraphClone& clone : clones) {
    auto [copy, added] = copies.try_emplace(clone.graph);
    if (added) order.push_back(clone.graph);
    copy->second[clone.original] = clone.node;
  }
  std::unordered_set<std::uint64_t> has_edges;
  for (const GraphEdge& edge : trace.graph_edges) has_edges.insert(edge.after);
  // A copy may be the original of a later one, so its edges are added before that one is processed.
  for (const std::uint32_t graph : order) {
    const auto& node_of = copies[graph];
    const std::size_t count = trace.graph_edges.size();
    for (std::size_t i = 0; i < count; ++i) {
      const auto before = node_of.find(trace.graph_edges[i].before);
      const auto after = node_of.find(trace.graph_edges[i].after);
      if (before == node_of.end() || after == node_of.end() || has_edges.contains(after->second))
        continue;
      trace.graph_edges.push_back({before->second, after->second});
    }
  }
}

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

/// Gives all edges their direction. CUPTI's documentation does not say which of the two nodes of an
/// edge waits, but the times show it: the waiting node starts after the other has finished.
void orient_edges(Trace& trace) {
  if (trace.graph_edges.empty()) return;
  const std::vector<NodeRun> runs = node_runs(trace);
  const auto runs_of = [&](std::uint64_t node) {
    return std::equal_range(runs.begin(), runs.end(), NodeRun{.node = node},
                            [](const NodeRun& a, const NodeRun& b) { return a.node < b.node; });
  };
  std::int64_t as_recorded = 0;
  std::int64_t reversed = 0;
  for (const GraphEdge& edge : trace.graph_edges) {
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
  for (GraphEdge& edge : trace.graph_edges) std::swap(edge.before, edge.after);
}

std::int64_t field(const nlohmann::json& payload, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = payload.find(name);
    if (found != payload.end() && found->is_number_integer()) return found->get<std::int64_t>();
  }
  return 0;
}

/// The thread, time and index of an entry of some list.
struct ThreadPosition {
  std::uint16_t thread;
  std::int64_t time;
  std::uint32_t index;
};

void sort_by_thread(std::vector<ThreadPosition>& all) {
  std::sort(all.begin(), all.end(), [](const ThreadPosition& a, const ThreadPosition& b) {
    return std::pair(a.thread, a.time) < std::pair(b.thread, b.time);
  });
}

/// The calls that launched NCCL's kernels; `index` is the index of the kernel's device record.
std::vector<ThreadPosition> launches_of_collectives(const Trace& trace) {
  std::unordered_map<std::uint32_t, std::uint32_t> kernels;  // Correlation to device record.
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    const std::string_view name = trace.names[trace.devices[i].name];
    if (name.find("nccl") != std::string_view::npos)
      kernels[trace.devices[i].correlation] = static_cast<std::uint32_t>(i);
  }
  std::vector<ThreadPosition> launches;
  for (const HostRecord& call : trace.hosts) {
    if (!is_call(call.kind)) continue;
    const auto found = kernels.find(call.correlation);
    if (found != kernels.end()) launches.push_back({call.thread, call.start_ns, found->second});
  }
  sort_by_thread(launches);
  return launches;
}

/// Adds the bytes and the group that a range of NCCL names to the details of its kernel. Returns
/// false if the range has no facts.
bool add_collective(const NamedCollective& named, std::string_view facts, Trace& trace,
                    CollectiveDetails& details) {
  const nlohmann::json payload = try_parse_json<nlohmann::json>(facts);
  if (!payload.is_object()) return false;
  const std::int64_t size = field(payload, {"Message size [bytes]", "bytes", "count"});
  if (__builtin_add_overflow(details.in_elements, size, &details.in_elements))
    details.in_elements = std::numeric_limits<std::int64_t>::max();
  details.out_elements = details.in_elements;
  const std::int64_t group = field(payload, {"NCCL communicator ID", "commHash", "comm"});
  if (group != 0) details.group = trace.names.intern(std::to_string(group));
  const std::string_view whole = trace.names[trace.hosts[named.record].name];
  details.collective = trace.names.intern(whole.substr(whole.find(':') + 1));
  return true;
}

}  // namespace

void join_calls(SpoolJoins& joins, SpoolIndex& index, Trace& trace) {
  join_inner_calls(joins, index, trace);
  drop_records(joins, trace);
}

void join_graphs(const SpoolJoins& joins, Trace& trace) {
  clone_edges(joins.clones, trace);
  orient_edges(trace);
}

/// Finds the event record that each wait depends on: by its sync id if CUPTI reports it, otherwise
/// the last record of that event before the wait.
void resolve_events(const SpoolJoins& joins, SpoolIndex& index, Trace& trace) {
  if (joins.waits.empty()) return;
  const std::vector<spool::Event>& events = index.events;
  std::unordered_map<std::uint64_t, std::uint32_t> by_sync_id;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i].sync_id != 0) by_sync_id[events[i].sync_id] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::uint32_t> order(events.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  const auto key = [&](std::uint32_t i) {
    return std::tuple(events[i].event, events[i].correlation);
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
  for (const auto& [wait, number] : joins.waits) {
    const spool::Event* found = nullptr;
    const auto exact = by_sync_id.find(wait.sync_id);
    if (wait.sync_id != 0 && exact != by_sync_id.end()) {
      found = &events[exact->second];
    } else {
      const auto behind = std::upper_bound(
          order.begin(), order.end(), std::tuple(wait.event, wait.correlation),
          [&](const auto& wanted, std::uint32_t other) { return wanted < key(other); });
      if (behind != order.begin() && events[*std::prev(behind)].event == wait.event)
        found = &events[*std::prev(behind)];
    }
    if (found == nullptr) continue;
    SyncRecord& record = trace.syncs[number];
    record.wait_on_stream = index.stream(found->context, found->stream);
    record.wait_on_correlation = found->correlation;
  }
}

/// Attributes collectives to kernels. NCCL's ranges tell how much each collective moves. The kernel
/// is launched within the range, or at the end of the group that the collective belongs to. So a
/// kernel performs all collectives that its thread called since the kernel before it.
void describe_collectives(const SpoolJoins& joins, const SpoolIndex& index, Trace& trace) {
  const std::vector<NamedCollective>& all = joins.collectives;
  if (all.empty()) return;
  std::vector<ThreadPosition> calls;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const HostRecord& range = trace.hosts[all[i].record];
    calls.push_back({range.thread, range.start_ns, static_cast<std::uint32_t>(i)});
  }
  sort_by_thread(calls);
  auto next = calls.begin();
  for (const ThreadPosition& launch : launches_of_collectives(trace)) {
    while (next != calls.end() && next->thread < launch.thread) ++next;
    CollectiveDetails details;
    bool any = false;
    for (; next != calls.end() && next->thread == launch.thread && next->time <= launch.time;
         ++next) {
      const NamedCollective& named = all[next->index];
      any = add_collective(named, index.text(named.payload), trace, details) || any;
    }
    if (!any) continue;
    details.dtype = trace.names.intern("Byte");
    trace.devices[launch.index].details = static_cast<std::uint32_t>(trace.collectives.size());
    trace.collectives.push_back(details);
  }
}

}  // namespace foretrace
