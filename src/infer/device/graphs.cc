// CUDA graphs. All nodes of a launch share one call; their waits follow from the graph's edges, if
// these were recorded.

#include <algorithm>

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

}  // namespace

void find_graph_waits(const Records& records, Names& names, EventWaits& waits) {
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
        const DeviceEvent& first = records.events[before->event];
        const DeviceEvent& second = records.events[after.event];
        // On one stream they run in order anyway.
        if (first.stream == second.stream || first.finish > second.start + records.tolerance)
          continue;
        waits.push_back({after.event, before->event, Provenance::measured, why});
      }
    }
  }
}

}  // namespace foretrace::infer_detail
