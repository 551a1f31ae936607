#include "network/fabric.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths_no_color_map.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <unordered_map>

#include "foretrace/error.h"

namespace foretrace {

struct Fabric::ReverseGraph {
  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                            std::uint32_t>;  ///< An edge carries the index of its step.
  explicit ReverseGraph(std::size_t nodes) : graph(nodes) {}
  Graph graph;
};

namespace {

struct StopSearch {};  ///< Thrown to stop a search once it has reached the requested node.

/// Boost calls examine_vertex for each node in order of cost, once the cost is final.
template <class Reached>
struct Visitor : boost::dijkstra_visitor<> {
  explicit Visitor(const Reached& called) : reached(&called) {}
  template <class Vertex, class Graph>
  void examine_vertex(Vertex vertex, const Graph&) const {
    (*reached)(static_cast<std::uint32_t>(vertex));
  }
  const Reached* reached;
};

template <class Graph, class Weight, class Reached>
void search(const Graph& graph, std::uint32_t target, std::vector<PathCost>& costs,
            const Weight& weight, const Reached& reached) {
  using Edge = typename boost::graph_traits<Graph>::edge_descriptor;
  const auto places = get(boost::vertex_index, graph);
  const auto cost_of = boost::make_iterator_property_map(costs.begin(), places);
  const auto weights = boost::make_function_property_map<Edge>(weight);
  const boost::closed_plus<PathCost> plus(kNoPath);
  try {
    boost::dijkstra_shortest_paths_no_color_map(
        graph, boost::vertex(target, graph), boost::dummy_property_map(), cost_of, weights, places,
        std::less<PathCost>(), plus, kNoPath, PathCost{0}, Visitor<Reached>(reached));
  } catch (const StopSearch&) {
  }
}

}  // namespace

Fabric::Fabric(const Cluster& cluster, std::vector<std::uint32_t> nodes,
               std::span<const LinkId> links)
    : nodes_(std::move(nodes)), reverse_graph_(std::make_unique<ReverseGraph>(nodes_.size())) {
  std::unordered_map<std::uint32_t, std::uint32_t> places;
  for (std::uint32_t place = 0; place < nodes_.size(); ++place) places[nodes_[place]] = place;
  const auto step_to = [&](std::uint32_t next, LinkId link) {
    const PathCost cost = link_cost(cluster.links[link]);
    const PathCost passing = passing_cost(cluster, nodes_[next]);
    return Step{next, link, cost, passing == kNoPath ? kNoPath : cost + passing};
  };
  std::vector<std::pair<std::uint32_t, Step>> steps;
  for (const LinkId link : links) {
    const auto from = places.find(cluster.links[link].from);
    const auto to = places.find(cluster.links[link].to);
    if (from != places.end() && to != places.end())
      steps.emplace_back(from->second, step_to(to->second, link));
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  first_step_.assign(nodes_.size() + 1, 0);
  for (const auto& [place, step] : steps) {
    ++first_step_[place + 1];
    add_edge(step.next, place, static_cast<std::uint32_t>(steps_.size()), reverse_graph_->graph);
    steps_.push_back(step);
  }
  for (std::size_t i = 1; i < first_step_.size(); ++i) first_step_[i] += first_step_[i - 1];
}

Fabric::Fabric(Fabric&&) noexcept = default;
Fabric::~Fabric() = default;

PathCost link_cost(const ClusterLink& link) {
  return kHop + (link.kind == LinkKind::pcie ? kPcie : 0) +
         static_cast<PathCost>(link.latency.count());
}

PathCost passing_cost(const Cluster& cluster, std::uint32_t node) {
  const NodeKind kind = cluster.nodes[node].kind;
  if (kind == NodeKind::device && !cluster.devices_relay) return kNoPath;
  return kind == NodeKind::host ? kThroughHost : 0;
}

std::uint32_t Fabric::count_paths(std::span<const ShortestPaths> to_target, std::uint32_t place,
                                  std::uint32_t target) const {
  std::uint64_t paths = 0;
  for (const Step& step : steps(place)) {
    const PathCost into = step.cost(target);
    const bool on_the_way = into != kNoPath && to_target[step.next].paths > 0 &&
                            to_target[step.next].cost + into == to_target[place].cost;
    if (on_the_way) paths += to_target[step.next].paths;
  }
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(paths, std::numeric_limits<std::uint32_t>::max()));
}

std::vector<ShortestPaths> Fabric::towards(std::uint32_t target,
                                           std::optional<std::uint32_t> from) const {
  std::vector<ShortestPaths> to_target(nodes_.size());
  std::vector<PathCost> costs(nodes_.size());
  PathCost most = kNoPath;
  const auto& graph = reverse_graph_->graph;
  const auto weight = [&](const auto& edge) { return steps_[graph[edge]].cost(target); };
  search(graph, target, costs, weight, [&](std::uint32_t place) {
    if (costs[place] > most) throw StopSearch{};
    if (place == from) most = costs[place];
    to_target[place].cost = costs[place];
    to_target[place].paths = place == target ? 1 : count_paths(to_target, place, target);
  });
  return to_target;
}

void Fabric::walk(std::span<const ShortestPaths> to_target, std::uint32_t at, std::uint32_t target,
                  std::uint64_t choice, std::vector<LinkId>& out) const {
  while (at != target) {
    const Step* taken = nullptr;
    for (const Step& step : steps(at)) {
      const PathCost into = step.cost(target);
      const ShortestPaths& next = to_target[step.next];
      if (into == kNoPath || next.paths == 0 || next.cost + into != to_target[at].cost) continue;
      taken = &step;
      if (choice < next.paths) break;
      choice -= next.paths;
    }
    CHECK(taken);
    out.push_back(taken->link);
    at = taken->next;
  }
}

}  // namespace foretrace
