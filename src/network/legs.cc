#include "network/legs.h"

#include <algorithm>
#include <unordered_map>

namespace foretrace {
namespace {

/// The nodes, links and ranks of one host, from which its legs are built.
struct Host {
  std::vector<std::uint32_t> nodes;
  std::vector<LinkId> inner, leaving, entering;
  std::vector<std::uint32_t> ranks;
};

std::vector<Host> hosts_of(const Cluster& cluster) {
  std::vector<Host> hosts(static_cast<std::size_t>(cluster.hosts));
  const auto host_of = [&](std::uint32_t node) { return cluster.nodes[node].host; };
  const auto host_at = [&](std::int32_t host) -> Host& {
    return hosts[static_cast<std::size_t>(host)];
  };
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    if (host_of(node) >= 0) host_at(host_of(node)).nodes.push_back(node);
  }
  for (LinkId link = 0; link < cluster.links.size(); ++link) {
    const std::int32_t from = host_of(cluster.links[link].from);
    const std::int32_t to = host_of(cluster.links[link].to);
    if (from >= 0 && from == to) host_at(from).inner.push_back(link);
    if (from >= 0 && to < 0) host_at(from).leaving.push_back(link);
    if (from < 0 && to >= 0) host_at(to).entering.push_back(link);
  }
  for (std::uint32_t rank = 0; rank < cluster.placement.size(); ++rank)
    host_at(host_of(cluster.placement[rank])).ranks.push_back(rank);
  return hosts;
}

class Builder {
 public:
  explicit Builder(const Cluster& cluster) : cluster_(cluster) {
    legs_.ranks.resize(cluster.placement.size());
  }

  void add(Host host) {
    const Fabric fabric(cluster_, std::move(host.nodes), host.inner);
    std::unordered_map<std::uint32_t, std::uint32_t> places;
    for (std::uint32_t i = 0; i < fabric.nodes().size(); ++i) places[fabric.nodes()[i]] = i;
    const auto place_of = [&](std::uint32_t rank) { return places[cluster_.placement[rank]]; };
    for (const LinkId link : host.leaving) {
      const std::uint32_t gateway = places[cluster_.links[link].from];
      const std::vector<Ahead> ahead = fabric.towards(gateway);
      for (const std::uint32_t rank : host.ranks) {
        const PathCost passing = passing_gateway(cluster_.links[link].from, rank);
        if (passing == kNoPath || ahead[place_of(rank)].paths == 0) continue;
        Leg& leg = begin(legs_.ranks[rank].out,
                         passing + ahead[place_of(rank)].cost + link_cost(cluster_.links[link]),
                         cluster_.links[link].to);
        fabric.walk(ahead, place_of(rank), gateway, 0, legs_.links);
        legs_.links.push_back(link);
        finish(leg);
      }
    }
    for (std::size_t ordinal = 0; ordinal < host.ranks.size(); ++ordinal) {
      const std::uint32_t rank = host.ranks[ordinal];
      add_arriving(fabric, host, rank, ordinal, places);
      prefer_own(legs_.ranks[rank].out, ordinal);
      prefer_own(legs_.ranks[rank].in, ordinal);
    }
  }

  Legs finished() { return std::move(legs_); }

 private:
  /// Adds the legs that end at a rank: from outside the host, and from the host's other ranks.
  void add_arriving(const Fabric& fabric, const Host& host, std::uint32_t rank, std::size_t ordinal,
                    std::unordered_map<std::uint32_t, std::uint32_t>& places) {
    const std::uint32_t target = places[cluster_.placement[rank]];
    const std::vector<Ahead> ahead = fabric.towards(target);
    for (const LinkId link : host.entering) {
      const std::uint32_t gateway = places[cluster_.links[link].to];
      const PathCost passing = passing_gateway(cluster_.links[link].to, rank);
      if (passing == kNoPath || ahead[gateway].paths == 0) continue;
      Leg& leg = begin(legs_.ranks[rank].in,
                       passing + ahead[gateway].cost + link_cost(cluster_.links[link]),
                       cluster_.links[link].from);
      legs_.links.push_back(link);
      fabric.walk(ahead, gateway, target, 0, legs_.links);
      finish(leg);
    }
    for (std::size_t other = 0; other < host.ranks.size(); ++other) {
      const std::uint32_t from = places[cluster_.placement[host.ranks[other]]];
      if (other == ordinal || ahead[from].paths == 0) continue;
      Leg& leg = begin(legs_.ranks[host.ranks[other]].inside, ahead[from].cost, rank);
      // Pairs with several equal paths, as over the NVLinks of a DGX-1V, are spread over these
      // paths.
      fabric.walk(ahead, from, target, (other + ordinal) % ahead[from].paths, legs_.links);
      finish(leg);
    }
  }

  /// A device that is its own gateway costs nothing to pass.
  PathCost passing_gateway(std::uint32_t gateway, std::uint32_t rank) const {
    return gateway == cluster_.placement[rank] ? 0 : passing_cost(cluster_, gateway);
  }

  Leg& begin(std::vector<Leg>& list, PathCost cost, std::uint32_t end) {
    return list.emplace_back(Leg{cost, end, static_cast<std::uint32_t>(legs_.links.size()), 0});
  }
  void finish(Leg& leg) { leg.count = static_cast<std::uint32_t>(legs_.links.size()) - leg.first; }

  static void prefer_own(std::vector<Leg>& list, std::size_t ordinal) {
    const auto by_cost = [](const Leg& a, const Leg& b) { return a.cost < b.cost; };
    std::stable_sort(list.begin(), list.end(), by_cost);
    for (std::size_t first = 0; first < list.size();) {
      std::size_t end = first + 1;
      while (end < list.size() && list[end].cost == list[first].cost) ++end;
      const std::size_t own = first + ordinal % (end - first);
      for (; first < end; ++first) list[first].cost += first == own ? 0 : 1;
    }
    std::stable_sort(list.begin(), list.end(), by_cost);
  }

  const Cluster& cluster_;
  Legs legs_;
};

}  // namespace

Legs legs_of(const Cluster& cluster) {
  Builder builder(cluster);
  for (Host& host : hosts_of(cluster)) builder.add(std::move(host));
  return builder.finished();
}

}  // namespace foretrace
