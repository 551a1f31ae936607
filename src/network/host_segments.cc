#include "network/host_segments.h"

#include <algorithm>
#include <fmt/core.h>
#include <unordered_map>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxRanks = 1024;  ///< Ranks of one host.

/// The nodes, links and ranks of one host, from which its segments are built.
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
    segments_.ranks.resize(cluster.placement.size());
  }

  void add(Host host) {
    if (host.ranks.size() > kMaxRanks)
      throw Error(fmt::format(
          "a host must have at most {} devices, because the path between each two of them is kept, "
          "got {}",
          grouped(kMaxRanks), grouped(host.ranks.size())));
    const Fabric fabric(cluster_, std::move(host.nodes), host.inner);
    std::unordered_map<std::uint32_t, std::uint32_t> places;
    for (std::uint32_t i = 0; i < fabric.nodes().size(); ++i) places[fabric.nodes()[i]] = i;
    const auto place_of = [&](std::uint32_t rank) { return places[cluster_.placement[rank]]; };
    for (const LinkId link : host.leaving) {
      const std::uint32_t gateway = places[cluster_.links[link].from];
      const std::vector<ShortestPaths> to_target = fabric.towards(gateway);
      for (const std::uint32_t rank : host.ranks) {
        const PathCost passing = passing_gateway(cluster_.links[link].from, rank);
        if (passing == kNoPath || to_target[place_of(rank)].paths == 0) continue;
        HostSegment& segment =
            begin(segments_.ranks[rank].out,
                  passing + to_target[place_of(rank)].cost + link_cost(cluster_.links[link]),
                  cluster_.links[link].to);
        fabric.walk(to_target, place_of(rank), gateway, 0, segments_.links);
        segments_.links.push_back(link);
        finish(segment);
      }
    }
    for (std::size_t ordinal = 0; ordinal < host.ranks.size(); ++ordinal) {
      const std::uint32_t rank = host.ranks[ordinal];
      add_arriving(fabric, host, rank, ordinal, places);
      prefer_own_nic(segments_.ranks[rank].out, ordinal);
      prefer_own_nic(segments_.ranks[rank].in, ordinal);
    }
  }

  HostSegments finished() { return std::move(segments_); }

 private:
  /// Adds the segments that end at a rank: from outside the host, and from the host's other ranks.
  void add_arriving(const Fabric& fabric, const Host& host, std::uint32_t rank, std::size_t ordinal,
                    std::unordered_map<std::uint32_t, std::uint32_t>& places) {
    const std::uint32_t target = places[cluster_.placement[rank]];
    const std::vector<ShortestPaths> to_target = fabric.towards(target);
    for (const LinkId link : host.entering) {
      const std::uint32_t gateway = places[cluster_.links[link].to];
      const PathCost passing = passing_gateway(cluster_.links[link].to, rank);
      if (passing == kNoPath || to_target[gateway].paths == 0) continue;
      HostSegment& segment =
          begin(segments_.ranks[rank].in,
                passing + to_target[gateway].cost + link_cost(cluster_.links[link]),
                cluster_.links[link].from);
      segments_.links.push_back(link);
      fabric.walk(to_target, gateway, target, 0, segments_.links);
      finish(segment);
    }
    for (std::size_t other = 0; other < host.ranks.size(); ++other) {
      const std::uint32_t from = places[cluster_.placement[host.ranks[other]]];
      if (other == ordinal || to_target[from].paths == 0) continue;
      HostSegment& segment =
          begin(segments_.ranks[host.ranks[other]].inside, to_target[from].cost, rank);
      // Pairs with several equal paths, as over the NVLinks of a DGX-1V, are spread over these
      // paths.
      fabric.walk(to_target, from, target, (other + ordinal) % to_target[from].paths,
                  segments_.links);
      finish(segment);
    }
  }

  /// A device that is its own gateway costs nothing to pass.
  PathCost passing_gateway(std::uint32_t gateway, std::uint32_t rank) const {
    return gateway == cluster_.placement[rank] ? 0 : passing_cost(cluster_, gateway);
  }

  HostSegment& begin(std::vector<HostSegment>& list, PathCost cost, std::uint32_t end) {
    return list.emplace_back(
        HostSegment{cost, end, static_cast<std::uint32_t>(segments_.links.size()), 0});
  }
  void finish(HostSegment& segment) {
    segment.count = static_cast<std::uint32_t>(segments_.links.size()) - segment.first;
  }

  static void prefer_own_nic(std::vector<HostSegment>& list, std::size_t ordinal) {
    const auto by_cost = [](const HostSegment& a, const HostSegment& b) { return a.cost < b.cost; };
    std::stable_sort(list.begin(), list.end(), by_cost);
    for (std::size_t first = 0; first < list.size();) {
      std::size_t end = first + 1;
      while (end < list.size() && list[end].cost == list[first].cost) ++end;
      const std::size_t own_nic = first + ordinal % (end - first);
      for (; first < end; ++first) list[first].cost += first == own_nic ? 0 : 1;
    }
    std::stable_sort(list.begin(), list.end(), by_cost);
  }

  const Cluster& cluster_;
  HostSegments segments_;
};

}  // namespace

HostSegments host_segments(const Cluster& cluster) {
  Builder builder(cluster);
  for (Host& host : hosts_of(cluster)) builder.add(std::move(host));
  return builder.finished();
}

}  // namespace foretrace
