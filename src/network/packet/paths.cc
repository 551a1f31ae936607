#include "network/packet/paths.h"

#include <algorithm>

namespace foretrace {

PacketPaths uniform_paths(std::uint32_t endpoints, const LinkCost& cost,
                          std::uint32_t switches_from) {
  PacketPaths paths;
  paths.memories = 1;
  for (std::uint32_t i = 0; i < endpoints; ++i) {
    const bool is_first = i == 0;
    paths.links.push_back(
        {.bandwidth = cost.bandwidth, .latency = cost.latency, .is_first_hosts = is_first});
    paths.links.push_back({.bandwidth = cost.bandwidth, .memory = 0, .is_first_hosts = is_first});
  }
  paths.find = [switches_from](std::uint32_t from, std::uint32_t to, bool, std::vector<Path>& out) {
    out.assign(1, {});
    if (from == to) return;
    if (from < switches_from) out[0].push_back(2 * from);
    if (to < switches_from) out[0].push_back(2 * to + 1);
  };
  return paths;
}

PacketPaths paths_of(const Network& network, std::uint64_t seed) {
  const Cluster& cluster = network.cluster();
  PacketPaths paths;
  std::vector<std::uint32_t> memory_of(cluster.nodes.size(), PacketLink::kLossless);
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    const ClusterNode& node = cluster.nodes[i];
    if (node.kind == NodeKind::switch_ && node.host < 0) memory_of[i] = paths.memories++;
  }
  const std::int32_t first_host = network.host_of(0);
  for (const ClusterLink& link : network.links()) {
    const std::int32_t from = cluster.nodes[link.from].host, to = cluster.nodes[link.to].host;
    paths.links.push_back(
        {.bandwidth = link.bandwidth,
         .latency = link.latency,
         .memory = memory_of[link.from],
         .is_first_hosts = from != to && (from == first_host || to == first_host)});
  }
  paths.find = [&network, seed](std::uint32_t from, std::uint32_t to, bool all,
                                std::vector<Path>& out) {
    const std::uint32_t count = all ? std::min(network.paths(from, to), PacketPaths::kMaxPaths) : 1;
    out.resize(count);
    if (count == 1) return network.route(from, to, seed, out[0]);
    for (std::uint32_t i = 0; i < count; ++i) network.path(from, to, i, out[i]);
  };
  return paths;
}

std::uint32_t PairPaths::between(std::uint32_t from, std::uint32_t to) {
  const auto [known, is_new] = numbers_.try_emplace(std::uint64_t{from} << 32U | to,
                                                    static_cast<std::uint32_t>(pairs_.size()));
  if (!is_new) return known->second;
  paths_.find(from, to, all_, found_);
  pairs_.push_back(
      {static_cast<std::uint32_t>(begins_.size()), static_cast<std::uint32_t>(found_.size())});
  for (const Path& path : found_) {
    begins_.push_back(static_cast<std::uint32_t>(hops_.size()));
    hops_.insert(hops_.end(), path.begin(), path.end());
    hops_.push_back(kEnd);
  }
  return known->second;
}

std::span<const std::uint32_t> PairPaths::links(std::uint32_t pair, std::uint32_t path) const {
  const std::uint32_t first = begin(pair, path);
  std::uint32_t end = first;
  while (!ends(end)) ++end;
  return std::span(hops_).subspan(first, end - first);
}

}  // namespace foretrace
