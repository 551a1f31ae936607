#include "network/no_route.h"

#include <algorithm>
#include <fmt/core.h>
#include <vector>

#include "base/wording.h"

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
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::string> names;
  std::size_t all = 0;
  for (std::size_t node = 0; node < chosen.size(); ++node) {
    if (!chosen[node]) continue;
    if (++all <= kMostNamed) names.push_back(cluster.nodes[node].name);
  }
  return joined(names) + (all > kMostNamed ? fmt::format(" and {} more", all - kMostNamed) : "");
}

}  // namespace

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

}  // namespace foretrace
