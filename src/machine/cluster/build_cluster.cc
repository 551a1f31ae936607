#include <algorithm>
#include <fmt/core.h>
#include <unordered_map>
#include <vector>

#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "machine/cluster/machine_file.h"
#include "machine/cluster/name_range.h"

namespace foretrace {
namespace {

/// Returns the number of devices that NVLinks and NVSwitches connect with the first device,
/// including it.
std::int32_t nvlink_domain(const Cluster& cluster) {
  std::vector<std::vector<std::uint32_t>> beside(cluster.nodes.size());
  for (const ClusterLink& link : cluster.links) {
    if (link.kind == LinkKind::nvlink) beside[link.from].push_back(link.to);
  }
  std::vector<bool> seen(cluster.nodes.size());
  std::vector<std::uint32_t> found = {cluster.placement.front()};
  seen[found.front()] = true;
  std::int32_t devices = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (cluster.nodes[found[i]].kind == NodeKind::device) ++devices;
    for (const std::uint32_t next : beside[found[i]]) {
      if (!seen[next]) found.push_back(next), seen[next] = true;
    }
  }
  return devices;
}

using NodeIds = std::unordered_map<std::string, std::uint32_t>;

std::vector<std::uint32_t> ids_of(const NodeIds& ids, const std::vector<std::string>& names) {
  std::vector<std::uint32_t> found;
  for (const std::string& name : names) {
    const auto id = ids.find(name);
    if (id == ids.end()) {
      std::vector<std::string_view> known;
      for (const auto& [other, number] : ids) known.push_back(other);
      std::sort(known.begin(), known.end());
      throw Error(fmt::format("there is no node \"{}\"{}", name, did_you_mean(name, known)));
    }
    found.push_back(id->second);
  }
  return found;
}

/// The pairs of nodes that a group of links connects.
using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

void check_size(std::size_t from, std::size_t to) {
  constexpr std::size_t kMaxPairs = 4'000'000;
  if (from > kMaxPairs / std::max<std::size_t>(to, 1))
    throw Error("must join at most 4,000,000 pairs of nodes");
}

Pairs pairs_among(const std::vector<std::uint32_t>& nodes, bool mesh) {
  Pairs pairs;
  if (mesh) check_size(nodes.size(), nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t end = mesh ? nodes.size() : std::min(i + 2, nodes.size());
    for (std::size_t j = i + 1; j < end; ++j) pairs.emplace_back(nodes[i], nodes[j]);
  }
  if (!mesh && nodes.size() > 2) pairs.emplace_back(nodes.back(), nodes.front());
  return pairs;
}

/// If one side has fewer nodes, each of them connects to several nodes of the other side.
Pairs pairs_between(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to,
                    const std::string& pattern) {
  Pairs pairs;
  if (pattern == "all") {
    check_size(from.size(), to.size());
    for (const std::uint32_t a : from) {
      for (const std::uint32_t b : to) pairs.emplace_back(a, b);
    }
    return pairs;
  }
  const std::size_t most = std::max(from.size(), to.size());
  const std::size_t fewest = std::min(from.size(), to.size());
  if (fewest == 0 || most % fewest != 0) {
    throw Error(fmt::format("must join {} nodes with the same number or a divisor of it, got {}",
                            from.size(), to.size()));
  }
  const auto place = [&](std::size_t i, std::size_t size) {
    return pattern == "cycle" ? i % size : i * size / most;
  };
  for (std::size_t i = 0; i < most; ++i)
    pairs.emplace_back(from[place(i, from.size())], to[place(i, to.size())]);
  return pairs;
}

Pairs pairs_of(const LinkGroup& group, const NodeIds& ids) {
  const auto nodes = [&](const char* end, const std::string& range) {
    return within(end, [&] { return ids_of(ids, expand_names(range)); });
  };
  const bool among = group.pattern == "mesh" || group.pattern == "ring";
  if (among && !group.to.empty()) throw Error("to: must not be given for " + group.pattern);
  const std::vector<std::uint32_t> from = nodes("from", group.from);
  if (among) return pairs_among(from, group.pattern == "mesh");
  return pairs_between(from, nodes("to", group.to), group.pattern);
}

void add_links(Cluster& cluster, const std::vector<LinkGroup>& groups, const NodeIds& ids) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const LinkGroup& group = groups[i];
    within(fmt::format("links[{}]", i), [&] {
      const LinkKind kind = link_kind_named(group.kind);
      const auto count = static_cast<double>(group.count);
      for (const auto& [from, to] : pairs_of(group, ids)) {
        if (from == to)
          throw Error(fmt::format("must not join {} with itself", cluster.nodes[from].name));
        add_link(cluster,
                 {from, to, Bandwidth{group.bandwidth.bytes_per_second * count},
                  group.latency.value_or(usual_latency(kind)), kind,
                  static_cast<std::uint32_t>(group.count)},
                 !group.one_way);
      }
    });
  }
}

/// Returns the nodes of one host and the links among them, as a cluster of one host.
Cluster one_host(const HostModel& host) {
  Cluster cluster;
  NodeIds ids;
  const auto add = [&](const std::vector<std::string>& ranges, NodeKind kind) {
    for (std::string& name : expand_names(ranges)) {
      const auto id = static_cast<std::uint32_t>(cluster.nodes.size());
      if (!ids.emplace(name, id).second)
        throw Error(fmt::format("two nodes are named \"{}\"", name));
      cluster.nodes.push_back({std::move(name), kind, 0});
    }
  };
  add(host.devices, NodeKind::device);
  if (cluster.nodes.empty()) throw Error("devices: must name at least one device");
  add(host.nics, NodeKind::nic);
  add(host.switches, NodeKind::switch_);
  add(host.cpus, NodeKind::host);
  add_links(cluster, host.links, ids);
  return cluster;
}

void repeat(const Cluster& host, std::int64_t times, Cluster& cluster) {
  if (host.nodes.size() * static_cast<std::size_t>(times) > kMaxNodes)
    throw Error("must have at most 4,000,000 nodes");
  for (std::int32_t number = 0; number < times; ++number) {
    const auto first = static_cast<std::uint32_t>(cluster.nodes.size());
    const std::string prefix = fmt::format("node{}/", number);
    for (const ClusterNode& node : host.nodes)
      cluster.nodes.push_back({prefix + node.name, node.kind, number});
    for (ClusterLink link : host.links) {
      link.from += first;
      link.to += first;
      add_link(cluster, link, false);
    }
  }
}

std::vector<std::uint32_t> nodes_of(const Cluster& cluster, NodeKind kind) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (cluster.nodes[i].kind == kind) nodes.push_back(i);
  }
  return nodes;
}

/// Connects the devices of each group of `domain_hosts` hosts.
void wire_domains(const MachineFile& machine, Cluster& cluster) {
  if (!machine.domain) return;
  const std::vector<std::uint32_t> devices = nodes_of(cluster, NodeKind::device);
  const std::size_t per_host = devices.size() / static_cast<std::size_t>(machine.hosts);
  const std::size_t most = per_host * static_cast<std::size_t>(machine.domain_hosts);
  for (std::size_t first = 0; first < devices.size(); first += most) {
    const auto begin = devices.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(most, devices.size() - first));
    Wiring wiring(cluster, {begin, end}, per_host, fmt::format("domain{}/", first / most));
    within("domain", [&] { machine.domain->wire(wiring); });
  }
}

/// Connects the NICs, or the devices if there are no NICs.
void wire(const MachineFile& machine, Cluster& cluster) {
  if (!machine.network) return;
  const bool has_nics = !machine.host.nics.empty();
  std::vector<std::uint32_t> ports = nodes_of(cluster, has_nics ? NodeKind::nic : NodeKind::device);
  const std::size_t per_host = ports.size() / static_cast<std::size_t>(machine.hosts);
  Wiring wiring(cluster, std::move(ports), per_host);
  within("network", [&] { machine.network->wire(wiring); });
  cluster.tiers = machine.network->tiers(static_cast<std::int64_t>(per_host));
  if (!has_nics && machine.network->ports_relay()) cluster.devices_relay = true;
}

/// Adds the switches outside hosts and the links that the file lists individually.
void add_listed_nodes(const MachineFile& machine, Cluster& cluster) {
  for (std::string& name : expand_names(machine.switches))
    cluster.nodes.push_back({std::move(name), NodeKind::switch_, -1});
  if (machine.links.empty() && machine.placement.empty()) return;
  NodeIds ids;
  for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
    if (!ids.emplace(cluster.nodes[i].name, i).second)
      throw Error(fmt::format("two nodes are named \"{}\"", cluster.nodes[i].name));
  }
  add_links(cluster, machine.links, ids);
  within("placement", [&] { cluster.placement = ids_of(ids, expand_names(machine.placement)); });
  std::vector<bool> taken(cluster.nodes.size());
  for (const std::uint32_t node : cluster.placement) {
    if (cluster.nodes[node].kind != NodeKind::device || taken[node])
      throw Error("placement: must name devices, each once, got " + cluster.nodes[node].name);
    taken[node] = true;
  }
}

std::optional<bool> yes_or_no(const std::string& text) {
  if (text == "unknown") return {};
  return text == "yes";
}

HostFacts facts_of(const MachineFile& machine, const Cluster& cluster, std::size_t devices) {
  HostFacts facts{.architecture = machine.facts.architecture,
                  .cpu = machine.facts.cpu == "unknown" ? "" : machine.facts.cpu,
                  .nvls = yes_or_no(machine.facts.nvls),
                  .sharp = yes_or_no(machine.facts.sharp),
                  .nic_bandwidth = {},
                  .devices_per_host = static_cast<std::int32_t>(devices)};
  facts.devices_per_nvlink_domain = std::max(nvlink_domain(cluster), facts.devices_per_host);
  Bandwidth out{};
  for (const ClusterLink& link : cluster.links) {
    if (link.kind == LinkKind::network && cluster.nodes[link.from].host == 0 &&
        cluster.nodes[link.to].host != 0)
      out.bytes_per_second += link.bandwidth.bytes_per_second;
  }
  if (out.bytes_per_second > 0) facts.nic_bandwidth = out;
  return facts;
}

}  // namespace

Cluster build_cluster(const MachineFile& machine, std::int64_t ranks) {
  Cluster cluster;
  cluster.name = machine.name;
  cluster.source = machine.source;
  cluster.device = machine.device;
  cluster.hosts = static_cast<std::int32_t>(machine.hosts);
  cluster.devices_relay = machine.devices_relay;
  cluster.notes = machine.notes;
  const Cluster host = within("host", [&] { return one_host(machine.host); });
  repeat(host, machine.hosts, cluster);
  wire_domains(machine, cluster);
  wire(machine, cluster);
  add_listed_nodes(machine, cluster);
  if (cluster.placement.empty()) cluster.placement = nodes_of(cluster, NodeKind::device);
  const std::size_t devices = nodes_of(host, NodeKind::device).size();
  cluster.facts = facts_of(machine, cluster, devices);
  const auto places = static_cast<std::int64_t>(cluster.placement.size());
  if (ranks > places) {
    throw Error(fmt::format("must have a device for each of {} ranks, but has {} ({} hosts of {})",
                            ranks, places, machine.hosts, devices));
  }
  if (ranks > 0) cluster.placement.resize(static_cast<std::size_t>(ranks));
  return cluster;
}

}  // namespace foretrace
