// CUDA graphs. All nodes of a launch share one call; which waits for which is the graph's own
// structure, where the recording has it.

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

class GraphWaits {
 public:
  GraphWaits(const Records& records, Names& names)
      : records_(records), why_(why_named(names, "graph edge")), edges_(records.trace.graph_edges) {
    std::sort(edges_.begin(), edges_.end(), [](const GraphEdge& a, const GraphEdge& b) {
      return std::pair(a.after, a.before) < std::pair(b.after, b.before);
    });
  }

  void find(const Call& call, std::vector<EventWait>& waits) {
    nodes_.clear();
    for (const std::uint32_t i : call.launched) {
      const std::uint64_t node = records_.trace.devices[records_.events[i].record].graph_node;
      if (node != 0) nodes_.push_back({node, i});
    }
    std::sort(nodes_.begin(), nodes_.end());
    for (const Node& after : nodes_) find(after, waits);
  }

 private:
  void find(const Node& after, std::vector<EventWait>& waits) const {
    const auto behind = [](const GraphEdge& edge, std::uint64_t node) { return edge.after < node; };
    auto edge = std::lower_bound(edges_.begin(), edges_.end(), after.node, behind);
    for (; edge != edges_.end() && edge->after == after.node; ++edge) {
      const auto before =
          std::lower_bound(nodes_.begin(), nodes_.end(), Node{.node = edge->before});
      if (before == nodes_.end() || before->node != edge->before) continue;
      const DeviceEvent& first = records_.events[before->event];
      const DeviceEvent& second = records_.events[after.event];
      // On one stream they are in line anyway.
      if (first.stream == second.stream || first.finish > second.start + records_.tolerance)
        continue;
      waits.push_back({after.event, before->event, Provenance::measured, why_});
    }
  }

  const Records& records_;
  Why why_;
  std::vector<GraphEdge> edges_;  ///< By the node that waits.
  std::vector<Node> nodes_;       ///< Nodes of the current launch.
};

}  // namespace

void find_graph_waits(const Records& records, Names& names, EventWaits& waits) {
  if (records.trace.graph_edges.empty()) return;
  GraphWaits graphs(records, names);
  for (const Call& call : records.calls) {
    if (call.launched.size() > 1) graphs.find(call, waits);
  }
}

}  // namespace foretrace::infer_detail
