#include "import/execution_traces/execution_order.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace foretrace {

namespace {

/// For each place in `order`, the place of its parent; kNone if it has none. Parents with larger
/// ids than their children are ignored, so there can be no cycle.
std::vector<std::uint32_t> parents_in(const std::vector<NodeIds>& nodes,
                                      const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> parents(order.size(), kNone);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeIds& node = nodes[order[i]];
    if (node.parent >= node.id) continue;
    const auto found =
        std::lower_bound(order.begin(), order.end(), node.parent,
                         [&](std::uint32_t a, std::uint64_t id) { return nodes[a].id < id; });
    if (found != order.end() && nodes[*found].id == node.parent)
      parents[i] = static_cast<std::uint32_t>(found - order.begin());
  }
  return parents;
}

void reorder(Trace& trace, const std::vector<std::uint32_t>& order) {
  std::vector<HostRecord> hosts(order.size());
  std::vector<std::uint32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    hosts[i] = trace.hosts[order[i]];
    place[order[i]] = static_cast<std::uint32_t>(i);
  }
  trace.hosts = std::move(hosts);
  for (TensorRecord& tensor : trace.tensors) tensor.host = place[tensor.host];
  std::stable_sort(trace.tensors.begin(), trace.tensors.end(),
                   [](const TensorRecord& a, const TensorRecord& b) { return a.host < b.host; });
}

}  // namespace

void set_positions(Trace& trace, const std::vector<NodeIds>& nodes) {
  std::vector<std::uint32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return nodes[a].id < nodes[b].id; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::uint64_t id = nodes[order[i]].id;
    if (id != nodes[order[i - 1]].id) continue;
    trace.notes.add(Severity::warning, "nodes with the id of another node",
                    "id " + std::to_string(id));
  }
  const std::vector<std::uint32_t> parents = parents_in(nodes, order);
  reorder(trace, order);
  std::vector<std::uint32_t> last(order.size());  // The last op that begins inside each op.
  std::iota(last.begin(), last.end(), 0U);
  for (std::size_t i = order.size(); i-- > 0;) {
    if (parents[i] != kNone) last[parents[i]] = std::max(last[parents[i]], last[i]);
  }
  std::int64_t position = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    trace.hosts[i].start_ns = position++;
    for (std::size_t at = i; at != kNone && last[at] == i; at = parents[at])
      trace.hosts[at].duration_ns = position++ - trace.hosts[at].start_ns;
  }
}

}  // namespace foretrace
