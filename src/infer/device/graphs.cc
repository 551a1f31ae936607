// CUDA graphs. All nodes of a launch share one call; their waits follow from the graph's edges, if
// these were recorded. Launches of one executable graph never overlap, whatever streams its nodes
// run on (CUDA C Programming Guide, "Graph Execution"): a launch begins when the one before it is
// done.

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// A node of one launch.
struct Node {
  std::uint64_t node = 0;
  std::uint32_t event = kNone;
  friend bool operator<(const Node& a, const Node& b) { return a.node < b.node; }
};

/// The nodes that a call launched, sorted.
std::vector<Node> nodes_of(const Call& call, const Records& records) {
  std::vector<Node> nodes;
  for (const std::uint32_t i : call.launched) {
    const std::uint64_t node = records.trace.devices[records.events[i].record].graph_node;
    if (node != 0) nodes.push_back({node, i});
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

/// The events of a launch that are last (or first) on their streams.
std::vector<std::uint32_t> outer_events(const std::vector<std::uint32_t>& launched,
                                        const Records& records, bool last) {
  std::map<std::uint16_t, std::uint32_t> by_stream;  // Launched events are in order of start.
  for (const std::uint32_t i : launched) {
    const auto [at, added] = by_stream.try_emplace(records.events[i].stream, i);
    if (!added && last) at->second = i;
  }
  std::vector<std::uint32_t> found;
  for (const auto& [stream, event] : by_stream) found.push_back(event);
  return found;
}

/// The events that began before any other of the launch was done, and so wait for none of them.
std::vector<std::uint32_t> roots_of(const std::vector<std::uint32_t>& launched,
                                    const Records& records) {
  std::int64_t first_done = std::numeric_limits<std::int64_t>::max();
  for (const std::uint32_t i : launched)
    first_done = std::min(first_done, records.events[i].finish);
  std::vector<std::uint32_t> roots = outer_events(launched, records, false);
  std::erase_if(roots, [&](std::uint32_t i) {
    return i != launched.front() && records.events[i].start >= first_done;
  });
  return roots;
}

/// The call that launched a node of this call's graph last before it, or kNone. Notes this one.
std::uint32_t previous_launch(const Records& records, std::uint32_t number,
                              std::unordered_map<std::uint64_t, std::uint32_t>& last_call_of_node) {
  std::uint32_t previous = kNone;
  for (const Node& node : nodes_of(records.calls[number], records)) {
    std::uint32_t& last = last_call_of_node.try_emplace(node.node, kNone).first->second;
    if (previous == kNone && last != number) previous = last;
    last = number;
  }
  return previous;
}

/// Whether `after` can have waited for `before` on another stream; on one they run in order anyway.
bool can_wait_across(const Records& records, std::uint32_t after, std::uint32_t before) {
  const DeviceEvent &first = records.events[before], &second = records.events[after];
  return first.stream != second.stream && first.finish <= second.start + records.tolerance;
}

/// Adds the waits of each launch for the previous one of the same graph, which has the same nodes.
void find_replay_waits(const Records& records, WaitReason why, EventWaits& waits) {
  std::unordered_map<std::uint64_t, std::uint32_t> last_call_of_node;
  std::uint32_t current = kNone;
  for (const std::uint32_t event : records.by_launch) {
    const std::uint32_t number = records.events[event].call;
    if (number == current || records.trace.devices[records.events[event].record].graph_node == 0)
      continue;
    current = number;
    const std::vector<std::uint32_t>& launched = records.calls[number].launched;
    const std::uint32_t previous = previous_launch(records, number, last_call_of_node);
    if (previous == kNone) continue;
    const auto ends = outer_events(records.calls[previous].launched, records, true);
    for (const std::uint32_t after : roots_of(launched, records)) {
      for (const std::uint32_t before : ends) {
        if (can_wait_across(records, after, before))
          waits.push_back({after, before, Provenance::structural, why});
      }
    }
  }
}

}  // namespace

void find_graph_waits(const Records& records, Names& names, EventWaits& waits) {
  const bool any_node =
      std::any_of(records.trace.devices.begin(), records.trace.devices.end(),
                  [](const DeviceRecord& record) { return record.graph_node != 0; });
  if (any_node) find_replay_waits(records, wait_reason_named(names, "previous replay"), waits);
  std::vector<GraphEdge> edges = records.trace.graph_edges;
  if (edges.empty()) return;
  const WaitReason why = wait_reason_named(names, "graph edge");
  std::sort(edges.begin(), edges.end(), [](const GraphEdge& a, const GraphEdge& b) {
    return std::pair(a.after, a.before) < std::pair(b.after, b.before);
  });
  const auto behind = [](const GraphEdge& edge, std::uint64_t node) { return edge.after < node; };
  for (const Call& call : records.calls) {
    if (call.launched.size() < 2) continue;
    const std::vector<Node> nodes = nodes_of(call, records);
    for (const Node& after : nodes) {
      auto edge = std::lower_bound(edges.begin(), edges.end(), after.node, behind);
      for (; edge != edges.end() && edge->after == after.node; ++edge) {
        const auto before =
            std::lower_bound(nodes.begin(), nodes.end(), Node{.node = edge->before});
        if (before == nodes.end() || before->node != edge->before) continue;
        if (can_wait_across(records, after.event, before->event))
          waits.push_back({after.event, before->event, Provenance::measured, why});
      }
    }
  }
}

}  // namespace foretrace::infer_detail
