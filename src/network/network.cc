#include "network/network.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <cstdint>
#include <fmt/core.h>
#include <limits>
#include <string>
#include <vector>

#include "base/random_generator.h"
#include "base/wording.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "network/fabric.h"
#include "network/host_segments.h"

namespace foretrace {
namespace {

/// Returns the nodes that traffic from `start` can reach, including `start`. Traffic leaves its own
/// host and enters another one; if hosts meet only at switches, it does not pass through a third
/// host.
std::vector<bool> reached_from(const Cluster& cluster, std::uint32_t start, bool hosts_are_linked) {
  const auto host = [&](std::uint32_t node) { return cluster.nodes[node].host; };
  std::vector<std::vector<std::uint32_t>> neighbors(cluster.nodes.size());
  for (const ClusterLink& link : cluster.links) neighbors[link.from].push_back(link.to);
  std::vector<bool> reached(cluster.nodes.size());
  std::vector<std::uint32_t> found = {start};
  reached[start] = true;
  const auto spread = [&](const auto& leads) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool device = cluster.nodes[found[i]].kind == NodeKind::device;
      if (i > 0 && device && !cluster.devices_relay) continue;
      for (const std::uint32_t next : neighbors[found[i]]) {
        if (!reached[next] && leads(i, found[i], next)) found.push_back(next), reached[next] = true;
      }
    }
  };
  spread([&](std::size_t, std::uint32_t from, std::uint32_t to) { return host(from) == host(to); });
  const std::size_t in_own_host = found.size();
  spread([&](std::size_t i, std::uint32_t from, std::uint32_t to) {
    return hosts_are_linked || host(from) < 0 || host(from) == host(to) ||
           (i < in_own_host && host(to) < 0);
  });
  return reached;
}

std::string node_list(const Cluster& cluster, const std::vector<bool>& chosen) {
  constexpr std::size_t kMaxNamed = 4;
  std::vector<std::string> names;
  std::size_t all = 0;
  for (std::size_t node = 0; node < chosen.size(); ++node) {
    if (!chosen[node]) continue;
    if (++all <= kMaxNamed) names.push_back(cluster.nodes[node].name);
  }
  return joined(names) + (all > kMaxNamed ? fmt::format(" and {} more", all - kMaxNamed) : "");
}

/// Explains why there is no route between two ranks: lists the nodes that the first reaches and the
/// nodes that no link leads to.
std::string describe_no_route(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                              bool hosts_are_linked) {
  const auto name = [&](std::uint32_t rank) {
    return fmt::format("rank {} ({})", rank, cluster.nodes[cluster.placement[rank]].name);
  };
  std::vector<bool> reached = reached_from(cluster, cluster.placement[from], hosts_are_linked);
  const std::string inside = node_list(cluster, reached);
  reached.flip();
  return fmt::format(
      "{}: no route from {} to {}: no link leads from the nodes that the first rank reaches ({}) "
      "to the rest ({})",
      cluster.name, name(from), name(to), inside, node_list(cluster, reached));
}

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

/// Returns the highest bandwidth from the first half of the ranks to the second half. With an odd
/// number of ranks the first half has one more. It is computed as a maximum flow, which equals the
/// minimum cut (Boykov and Kolmogorov, PAMI 2004).
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
  constexpr Flow kUncut = std::numeric_limits<Flow>::max() / 4;
  for (std::size_t node = 0; node < sides.size(); ++node) {
    if (sides[node] == Side::first) add_edge_pair(graph, begin, node, kUncut);
    if (sides[node] == Side::second) add_edge_pair(graph, node, end, kUncut);
  }
  const Flow flow = boost::boykov_kolmogorov_max_flow(
      graph, get(&FlowEdge::capacity, graph), get(&FlowEdge::residual, graph),
      get(&FlowEdge::reverse, graph), get(&FlowVertex::before, graph),
      get(&FlowVertex::color, graph), get(&FlowVertex::distance, graph),
      get(boost::vertex_index, graph), begin, end);
  return {static_cast<double>(flow)};
}

/// Hosts that are linked directly, as in a torus of devices, are searched as one graph.
bool hosts_are_linked(const Cluster& cluster) {
  return std::any_of(cluster.links.begin(), cluster.links.end(), [&](const ClusterLink& link) {
    const std::int32_t from = cluster.nodes[link.from].host, to = cluster.nodes[link.to].host;
    return from >= 0 && to >= 0 && from != to;
  });
}

std::vector<LinkId> all_links(const Cluster& cluster) {
  std::vector<LinkId> links(cluster.links.size());
  for (LinkId link = 0; link < links.size(); ++link) links[link] = link;
  return links;
}

std::vector<std::uint32_t> core_nodes(const Cluster& cluster, bool all) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    if (all || cluster.nodes[node].host < 0) nodes.push_back(node);
  }
  return nodes;
}

/// Each device is its own segment: routes start and end at the device itself.
HostSegments device_segments(const Cluster& cluster) {
  HostSegments segments;
  for (const std::uint32_t node : cluster.placement)
    segments.ranks.push_back(
        {.out = {HostSegment{.end = node}}, .in = {HostSegment{.end = node}}, .inside = {}});
  return segments;
}

constexpr std::size_t kMaxCached = std::size_t{256} << 20;  ///< Bytes of cached distances.

}  // namespace

struct Network::Impl {
  explicit Impl(Cluster made)
      : cluster(std::move(made)),
        core_has_all(hosts_are_linked(cluster)),
        core(cluster, core_nodes(cluster, core_has_all), all_links(cluster)),
        segments(core_has_all ? device_segments(cluster) : host_segments(cluster)),
        place(cluster.nodes.size()),
        cached(core.nodes().size()) {
    for (std::uint32_t i = 0; i < core.nodes().size(); ++i) place[core.nodes()[i]] = i;
    for (const std::uint32_t node : cluster.placement) host.push_back(cluster.nodes[node].host);
  }

  /// Returns the shortest paths to a node of the core, at least from `from`.
  const std::vector<ShortestPaths>& towards(std::uint32_t target, std::uint32_t from) {
    std::vector<ShortestPaths>& to_target = cached[target];
    if (!to_target.empty() && (to_target[from].paths > 0 || !partial[target])) return to_target;
    const bool first = to_target.empty() && core_has_all;
    if (to_target.empty()) bytes += core.nodes().size() * sizeof(ShortestPaths);
    if (bytes > kMaxCached) {
      for (std::vector<ShortestPaths>& other : cached) std::vector<ShortestPaths>().swap(other);
      bytes = core.nodes().size() * sizeof(ShortestPaths);
    }
    to_target = core.towards(target, first ? std::optional(from) : std::nullopt);
    partial[target] = first;
    return to_target;
  }

  /// Calls visit(cost, paths, first segment, last segment) for each route that may be the shortest.
  /// The last segment is null for a route inside a host. `visit` lowers `best`.
  template <class Visit>
  void each_route(std::uint32_t from, std::uint32_t to, const PathCost& best, const Visit& visit) {
    if (host[from] == host[to]) {
      for (const HostSegment& segment : segments.ranks[from].inside)
        if (segment.end == to) visit(segment.cost, 1U, segment, nullptr);
    }
    const std::vector<HostSegment>& arriving = segments.ranks[to].in;
    if (arriving.empty()) return;
    for (const HostSegment& out : segments.ranks[from].out) {
      if (out.cost + arriving.front().cost > best) return;
      for (const HostSegment& in : arriving) {
        if (out.cost + in.cost > best) break;
        const ShortestPaths& between = towards(place[in.end], place[out.end])[place[out.end]];
        if (between.paths > 0) visit(out.cost + in.cost + between.cost, between.paths, out, &in);
      }
    }
  }

  /// A candidate route: the segment out of a host and the segment into another; `last` is null for
  /// a route inside a host.
  struct CandidateRoute {
    const HostSegment* first;
    const HostSegment* last;
    std::uint32_t paths;
  };

  /// Leaves the cheapest candidates in `candidates` and returns how many paths they have.
  std::uint32_t find_candidates(std::uint32_t from, std::uint32_t to) {
    PathCost least = kNoPath;
    std::uint64_t paths = 0;
    candidates.clear();
    each_route(
        from, to, least,
        [&](PathCost cost, std::uint32_t more, const HostSegment& first, const HostSegment* last) {
          if (cost > least) return;
          if (cost < least) least = cost, paths = 0, candidates.clear();
          candidates.push_back({&first, last, more});
          paths += more;
        });
    if (paths == 0) throw Error(describe_no_route(cluster, from, to, core_has_all));
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(paths, UINT32_MAX));
  }

  /// Appends path number `choice` among the paths of `candidates`.
  void append_path(std::uint64_t choice, std::vector<LinkId>& out) {
    auto candidate = candidates.begin();
    while (choice >= candidate->paths) choice -= candidate++->paths;
    append(*candidate->first, out);
    if (!candidate->last) return;
    const std::uint32_t target = place[candidate->last->end];
    core.walk(towards(target, place[candidate->first->end]), place[candidate->first->end], target,
              choice, out);
    append(*candidate->last, out);
  }

  void append(const HostSegment& segment, std::vector<LinkId>& out) const {
    const auto links = segments.links_of(segment);
    out.insert(out.end(), links.begin(), links.end());
  }

  Cluster cluster;
  bool core_has_all;  ///< Whether the core contains all nodes, as hosts are linked directly.
  Fabric core;
  HostSegments segments;
  std::vector<std::uint32_t> place;                ///< Place in the core, by node.
  std::vector<std::int32_t> host;                  ///< By rank.
  std::vector<std::vector<ShortestPaths>> cached;  ///< By place of the target; empty if not cached.
  std::vector<bool> partial = std::vector<bool>(cached.size());
  std::size_t bytes = 0;
  std::vector<CandidateRoute> candidates;
};

Network::Network(Cluster cluster) {
  if (cluster.placement.empty()) throw Error("machine: must have at least one device");
  impl_ = std::make_unique<Impl>(std::move(cluster));
}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

const Cluster& Network::cluster() const { return impl_->cluster; }
std::uint32_t Network::ranks() const {
  return static_cast<std::uint32_t>(impl_->cluster.placement.size());
}
std::span<const ClusterLink> Network::links() const { return impl_->cluster.links; }
Bandwidth Network::bisection() const { return least_cut(impl_->cluster); }

std::int32_t Network::host_of(std::uint32_t rank) const { return impl_->host[rank]; }

std::uint32_t Network::paths(std::uint32_t from, std::uint32_t to) const {
  return from == to ? 1 : impl_->find_candidates(from, to);
}

void Network::route(std::uint32_t from, std::uint32_t to, std::uint64_t seed,
                    std::vector<LinkId>& out) const {
  out.clear();
  if (from == to) return;
  const std::uint32_t paths = impl_->find_candidates(from, to);
  const std::uint64_t pair = (std::uint64_t{from} << 32U) | to;
  impl_->append_path(RandomGenerator(RandomGenerator(pair).next() ^ seed).next() % paths, out);
}

void Network::path(std::uint32_t from, std::uint32_t to, std::uint32_t path,
                   std::vector<LinkId>& out) const {
  out.clear();
  if (from == to) return;
  const std::uint32_t paths = impl_->find_candidates(from, to);
  if (path >= paths) throw Error(fmt::format("path: must be below {}", paths));
  impl_->append_path(path, out);
}

}  // namespace foretrace
