#include "network/bisection.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <limits>

namespace foretrace {
namespace {

using Flow = std::int64_t;  ///< Bytes per second; integers, so that sums are exact in any order.
using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct FlowEdge {
  Flow capacity = 0, residual = 0;
  Traits::edge_descriptor reverse{};
};
struct FlowVertex {
  boost::default_color_type color{};
  Flow distance = 0;
  Traits::edge_descriptor before{};
};
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, FlowVertex, FlowEdge>;

void add_edge_pair(FlowGraph& graph, std::size_t from, std::size_t to, Flow capacity) {
  const auto forward = add_edge(from, to, {capacity, 0, {}}, graph).first;
  const auto reverse = add_edge(to, from, {0, 0, forward}, graph).first;
  graph[forward].reverse = reverse;
}

enum class Side : char { none, first, second };

std::vector<Side> sides_of(const Cluster& cluster) {
  std::vector<Side> sides(cluster.nodes.size(), Side::none);
  const std::size_t half = (cluster.placement.size() + 1) / 2;
  for (std::size_t rank = 0; rank < cluster.placement.size(); ++rank)
    sides[cluster.placement[rank]] = rank < half ? Side::first : Side::second;
  return sides;
}

}  // namespace

Bandwidth least_cut(const Cluster& cluster) {
  if (cluster.placement.size() < 2) return {};
  const std::vector<Side> sides = sides_of(cluster);
  const std::size_t begin = cluster.nodes.size(), end = begin + 1;
  FlowGraph graph(end + 1);
  const auto carries_nothing = [&](std::uint32_t node, Side side) {
    const bool device = cluster.nodes[node].kind == NodeKind::device;
    return device && !cluster.devices_relay && sides[node] != side;
  };
  for (const ClusterLink& link : cluster.links) {
    if (carries_nothing(link.from, Side::first) || carries_nothing(link.to, Side::second)) continue;
    add_edge_pair(graph, link.from, link.to, static_cast<Flow>(link.bandwidth.bytes_per_second));
  }
  constexpr Flow kNoLimit = std::numeric_limits<Flow>::max() / 4;
  for (std::size_t node = 0; node < sides.size(); ++node) {
    if (sides[node] == Side::first) add_edge_pair(graph, begin, node, kNoLimit);
    if (sides[node] == Side::second) add_edge_pair(graph, node, end, kNoLimit);
  }
  const Flow flow = boost::boykov_kolmogorov_max_flow(
      graph, get(&FlowEdge::capacity, graph), get(&FlowEdge::residual, graph),
      get(&FlowEdge::reverse, graph), get(&FlowVertex::before, graph),
      get(&FlowVertex::color, graph), get(&FlowVertex::distance, graph),
      get(boost::vertex_index, graph), begin, end);
  return {static_cast<double>(flow)};
}

}  // namespace foretrace
