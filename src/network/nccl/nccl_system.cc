#include "network/nccl/nccl_system.h"

#include <algorithm>
#include <map>
#include <set>

namespace foretrace {
namespace {

constexpr double kGiga = 1e9;
constexpr std::int64_t kUnknownArchitecture = 80;
constexpr Nanoseconds kInfiniBand{1200};  ///< Two cables and a switch, as presets state them.
constexpr std::uint32_t kNvlsChannels = 16, kNvlsChannelsBlackwell = 32;  ///< Recalled.

/// Returns the group of ranks that reach each other without a NIC: a host, or a rack of several
/// hosts.
std::int32_t node_of(const Network& network, std::uint32_t rank) {
  const HostFacts& facts = network.cluster().facts;
  const std::int32_t host = network.host_of(rank);
  if (facts.devices_per_host <= 0 || facts.devices_per_nvlink_domain <= facts.devices_per_host)
    return host;
  return host / (facts.devices_per_nvlink_domain / facts.devices_per_host);
}

/// Returns the bandwidth of all NVLinks of the first rank's device that lead to a switch or to
/// another device of `ring`.
double nvlink_of(const Network& network, const std::vector<std::uint32_t>& ring) {
  const Cluster& cluster = network.cluster();
  std::set<std::uint32_t> devices;
  for (const std::uint32_t rank : ring) devices.insert(cluster.placement[rank]);
  const std::uint32_t device = cluster.placement[ring.front()];
  double sum = 0;
  for (const ClusterLink& link : network.links()) {
    const bool leads = link.from == device && link.kind == LinkKind::nvlink;
    if (leads && (cluster.nodes[link.to].kind != NodeKind::device || devices.contains(link.to)))
      sum += link.bandwidth.bytes_per_second;
  }
  return sum / kGiga;
}

/// Returns the GB/s of each flow of a ring: all flows that cross the narrowest link share it.
double ring_share(const Network& network, const std::vector<std::uint32_t>& ring) {
  std::vector<LinkId> route;
  std::map<LinkId, double> flows;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    network.route(ring[i], ring[(i + 1) % ring.size()], 0, route);
    for (const LinkId link : route) ++flows[link];
  }
  double least = 0;
  for (const auto& [link, count] : flows) {
    const double share = network.links()[link].bandwidth.bytes_per_second / count / kGiga;
    if (least == 0 || share < least) least = share;
  }
  return least;
}

/// Sets the kind of links within a node, and their bandwidth with all ranks in a ring.
void measure_node(const Network& network, const std::vector<std::uint32_t>& ranks,
                  RankPlaces& places) {
  // NCCL lays several rings over all NVLinks of a device, whatever other links are equally near.
  places.intra = nvlink_of(network, ranks);
  places.kind = places.intra > 0 ? LinkKind::nvlink : LinkKind::pcie;
  if (places.intra <= 0) places.intra = ring_share(network, ranks);
}

/// Returns the number of hosts from the first to the last that has a rank.
std::int64_t hosts_of(const Network& network) {
  std::int32_t first = network.host_of(0), last = first;
  for (std::uint32_t rank = 1; rank < network.ranks(); ++rank) {
    first = std::min(first, network.host_of(rank));
    last = std::max(last, network.host_of(rank));
  }
  return last - first + 1;
}

double extra_latency_us(const Network& network, const std::vector<std::uint32_t>& firsts) {
  std::vector<LinkId> route;
  network.route(firsts[0], firsts[1], 0, route);
  Nanoseconds sum{};
  for (const LinkId link : route) {
    if (network.links()[link].kind == LinkKind::network) sum += network.links()[link].latency;
  }
  return std::max(0., static_cast<double>((sum - kInfiniBand).count()) / 1e3);
}

/// Sets the number and bandwidth of the NICs that the ranks of a node use. If the node has no NIC,
/// assumes one per rank with bandwidth `share`.
void measure_nics(const Network& network, double share, std::uint32_t groups, RankPlaces& places) {
  const Cluster& cluster = network.cluster();
  double nics = 0, sum = 0;
  const std::int32_t host = network.host_of(0);
  for (const ClusterLink& link : cluster.links) {
    const ClusterNode& from = cluster.nodes[link.from];
    if (from.kind != NodeKind::nic || from.host != host || link.kind != LinkKind::network) continue;
    ++nics;
    sum += link.bandwidth.bytes_per_second;
  }
  places.nics = places.per_node;
  places.inter = share * places.per_node / groups;
  if (nics == 0) return;
  if (cluster.facts.nic_bandwidth) sum = cluster.facts.nic_bandwidth->bytes_per_second;
  const double hosts_per_node =
      std::max(1.0, static_cast<double>(cluster.facts.devices_per_nvlink_domain) /
                        std::max(1, cluster.facts.devices_per_host));
  nics *= hosts_per_node;
  sum *= hosts_per_node;
  const double used = std::min(nics / groups, static_cast<double>(places.per_node));
  places.nics = std::max(1U, static_cast<std::uint32_t>(used));
  places.inter = sum * used / nics / kGiga * fabric_share(cluster.tiers, hosts_of(network));
}

/// Returns whether the first two ranks of a node reach each other through its CPU.
bool meet_at_cpu(const Network& network) {
  std::vector<LinkId> route;
  network.route(0, 1, 0, route);
  return std::ranges::any_of(route, [&](LinkId link) {
    return network.cluster().nodes[network.links()[link].to].kind == NodeKind::host;
  });
}

/// Across a CPU, NCCL lets devices write directly into each other's memory only for a pair on
/// AMD's.
bool copies_through_host(const Network& network, const RankPlaces& places) {
  const bool pair = network.cluster().facts.cpu == "amd" && places.per_node <= 2;
  return places.kind == LinkKind::pcie && places.per_node > 1 && !pair && meet_at_cpu(network);
}

}  // namespace

RankPlaces places_of(const Network& network, std::uint32_t groups) {
  RankPlaces places;
  places.ranks = network.ranks();
  std::map<std::int32_t, std::vector<std::uint32_t>> nodes;
  for (std::uint32_t rank = 0; rank < places.ranks; ++rank)
    nodes[node_of(network, rank)].push_back(rank);
  places.nodes = static_cast<std::uint32_t>(nodes.size());
  for (const auto& [node, ranks] : nodes)
    places.per_node = std::max(places.per_node, static_cast<std::uint32_t>(ranks.size()));
  if (places.per_node > 1) measure_node(network, nodes.begin()->second, places);
  if (places.nodes == 1) return places;
  std::vector<std::uint32_t> firsts;  // Finding the routes also reports missing ones.
  for (const auto& [node, ranks] : nodes) firsts.push_back(ranks.front());
  measure_nics(network, ring_share(network, firsts), groups, places);
  places.extra_latency_us = extra_latency_us(network, firsts);
  return places;
}

NcclSystem system_of(const Network& network, const RankPlaces& places,
                     std::vector<std::string>& assumed) {
  const HostFacts& facts = network.cluster().facts;
  NcclSystem system;
  system.architecture = facts.architecture.value_or(kUnknownArchitecture);
  if (!facts.architecture)
    assumed.push_back("the machine does not state its GPUs: Ampere is assumed");
  system.is_amd = facts.cpu == "amd";
  if (facts.cpu.empty()) assumed.push_back("the machine does not state its CPUs: Intel is assumed");
  system.copies_through_host = copies_through_host(network, places);
  if (system.copies_through_host)
    assumed.push_back(
        "devices are connected through a CPU, where NCCL copies through host memory: the links of "
        "the machine are an upper limit, and measured hosts with 4 and 8 such cards reached a "
        "quarter and a tenth of it, which no figure of the machine explains; use --calibrate");
  system.ranks = places.ranks;
  system.nodes = places.nodes;
  system.intra = places.kind;
  const double narrow = places.nodes == 1 ? places.intra
                        : places.per_node > 1 && places.intra > 0
                            ? std::min(places.intra, places.inter)
                            : places.inter;
  const NcclChannels channels = search_channels(narrow, system.architecture, places.nodes == 1);
  system.channels = channels.count;
  system.channel_intra = system.channel_inter = channels.each;
  if (places.nodes > 1 && places.per_node > 1 && places.intra > 0)
    system.channel_intra = places.intra / channels.count;
  system.graph_latency_us = places.extra_latency_us;
  system.own_copy = places.per_node > 1 ? places.intra : nvlink_of(network, {0});
  const bool nvls = facts.nvls.value_or(false) && places.kind == LinkKind::nvlink;
  if (!facts.nvls && system.architecture >= 90)
    assumed.push_back("the machine does not state whether it has NVLink SHARP: none is assumed");
  if (nvls && places.per_node > 2) {
    system.nvls_channels = system.architecture >= 100 ? kNvlsChannelsBlackwell : kNvlsChannels;
    system.nvls_channel = (places.nodes == 1 ? places.intra : narrow) / system.nvls_channels;
  }
  return system;
}

}  // namespace foretrace
