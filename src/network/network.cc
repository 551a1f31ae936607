#include "network/network.h"

#include <algorithm>

#include "base/draws.h"
#include "foretrace/error.h"
#include "network/bisection.h"
#include "network/fabric.h"
#include "network/legs.h"
#include "network/no_route.h"

namespace foretrace {
namespace {

/// Hosts that are linked directly, as in a torus of devices, are searched as one graph.
bool hosts_touch(const Cluster& cluster) {
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

std::vector<std::uint32_t> core_nodes(const Cluster& cluster, bool whole) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    if (whole || cluster.nodes[node].host < 0) nodes.push_back(node);
  }
  return nodes;
}

/// Each device is its own leg: routes start and end at the device itself.
Legs no_legs(const Cluster& cluster) {
  Legs legs;
  for (const std::uint32_t node : cluster.placement)
    legs.ranks.push_back({.out = {Leg{.end = node}}, .in = {Leg{.end = node}}, .inside = {}});
  return legs;
}

constexpr std::size_t kMostKept = std::size_t{256} << 20;  ///< Bytes of kept distances.

}  // namespace

struct Network::Impl {
  explicit Impl(Cluster made)
      : cluster(std::move(made)),
        whole(hosts_touch(cluster)),
        core(cluster, core_nodes(cluster, whole), all_links(cluster)),
        legs(whole ? no_legs(cluster) : legs_of(cluster)),
        place(cluster.nodes.size()),
        kept(core.nodes().size()) {
    for (std::uint32_t i = 0; i < core.nodes().size(); ++i) place[core.nodes()[i]] = i;
  }

  /// Returns the shortest paths to a node of the core, at least from `from`.
  const std::vector<Ahead>& towards(std::uint32_t target, std::uint32_t from) {
    std::vector<Ahead>& ahead = kept[target];
    if (!ahead.empty() && (ahead[from].paths > 0 || !partial[target])) return ahead;
    const bool first = ahead.empty() && whole;
    if (ahead.empty()) bytes += core.nodes().size() * sizeof(Ahead);
    if (bytes > kMostKept) {
      for (std::vector<Ahead>& other : kept) std::vector<Ahead>().swap(other);
      bytes = core.nodes().size() * sizeof(Ahead);
    }
    ahead = core.towards(target, first ? std::optional(from) : std::nullopt);
    partial[target] = first;
    return ahead;
  }

  /// Calls visit(cost, paths, first leg, last leg) for each route that may be the shortest. The
  /// last leg is null for a route inside a host. `visit` lowers `best`.
  template <class Visit>
  void each_route(std::uint32_t from, std::uint32_t to, const PathCost& best, const Visit& visit) {
    for (const Leg& leg : legs.ranks[from].inside) {
      if (leg.end == to) visit(leg.cost, 1U, leg, nullptr);
    }
    const std::vector<Leg>& arriving = legs.ranks[to].in;
    if (arriving.empty()) return;
    for (const Leg& out : legs.ranks[from].out) {
      if (out.cost + arriving.front().cost > best) return;
      for (const Leg& in : arriving) {
        if (out.cost + in.cost > best) break;
        const Ahead& between = towards(place[in.end], place[out.end])[place[out.end]];
        if (between.paths > 0) visit(out.cost + in.cost + between.cost, between.paths, out, &in);
      }
    }
  }

  /// A candidate route: the leg out of a host and the leg into another; `last` is null for a route
  /// inside a host.
  struct Way {
    const Leg* first;
    const Leg* last;
    std::uint32_t paths;
  };

  /// Leaves the cheapest candidates in `ways` and returns how many paths they have.
  std::uint32_t find_ways(std::uint32_t from, std::uint32_t to) {
    PathCost least = kNoPath;
    std::uint64_t paths = 0;
    ways.clear();
    each_route(from, to, least,
               [&](PathCost cost, std::uint32_t more, const Leg& first, const Leg* last) {
                 if (cost > least) return;
                 if (cost < least) least = cost, paths = 0, ways.clear();
                 ways.push_back({&first, last, more});
                 paths += more;
               });
    if (paths == 0) throw Error(no_route(cluster, from, to, whole));
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(paths, UINT32_MAX));
  }

  /// Appends path number `choice` among the paths of `ways`.
  void take(std::uint64_t choice, std::vector<LinkId>& out) {
    auto way = ways.begin();
    while (choice >= way->paths) choice -= way++->paths;
    append(*way->first, out);
    if (!way->last) return;
    const std::uint32_t target = place[way->last->end];
    core.walk(towards(target, place[way->first->end]), place[way->first->end], target, choice, out);
    append(*way->last, out);
  }

  void append(const Leg& leg, std::vector<LinkId>& out) const {
    const auto links = legs.links_of(leg);
    out.insert(out.end(), links.begin(), links.end());
  }

  Cluster cluster;
  bool whole;  ///< The core contains all nodes.
  Fabric core;
  Legs legs;
  std::vector<std::uint32_t> place;      ///< Place in the core, by node.
  std::vector<std::vector<Ahead>> kept;  ///< By place of the target; empty if not kept.
  std::vector<bool> partial = std::vector<bool>(kept.size());
  std::size_t bytes = 0;
  std::vector<Way> ways;
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

std::int32_t Network::host_of(std::uint32_t rank) const {
  return impl_->cluster.nodes[impl_->cluster.placement[rank]].host;
}

std::string Network::link_name(LinkId link) const {
  const auto& nodes = impl_->cluster.nodes;
  return nodes[links()[link].from].name + " -> " + nodes[links()[link].to].name;
}

std::uint32_t Network::paths(std::uint32_t from, std::uint32_t to) const {
  return from == to ? 1 : impl_->find_ways(from, to);
}

void Network::route(std::uint32_t from, std::uint32_t to, std::uint64_t seed,
                    std::vector<LinkId>& out) const {
  out.clear();
  if (from == to) return;
  const std::uint32_t paths = impl_->find_ways(from, to);
  const std::uint64_t pair = (std::uint64_t{from} << 32U) | to;
  impl_->take(Draws(Draws(pair).next() ^ seed).next() % paths, out);
}

void Network::path(std::uint32_t from, std::uint32_t to, std::uint32_t path,
                   std::vector<LinkId>& out) const {
  out.clear();
  if (from == to) return;
  const std::uint32_t paths = impl_->find_ways(from, to);
  if (path >= paths) throw Error("path: must be below " + std::to_string(paths));
  impl_->take(path, out);
}

}  // namespace foretrace
