#include "machine/cluster/topologies/topology.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxLinks = 8'000'000;

}  // namespace

std::uint32_t Wiring::add_switch(std::string_view name, std::size_t number) {
  const auto host = [&](std::uint32_t port) { return cluster_.nodes[port].host; };
  // A switch that joins NICs lies outside their host, even if there is only one host.
  const bool one_host = std::all_of(ports_.begin(), ports_.end(), [&](std::uint32_t port) {
    return host(port) == host(ports_.front()) && cluster_.nodes[port].kind == NodeKind::device;
  });
  if (cluster_.nodes.size() >= kMaxNodes) throw Error("must have at most 4,000,000 nodes");
  cluster_.nodes.push_back({fmt::format("{}{}{}", prefix_, name, number), NodeKind::switch_,
                            one_host && !ports_.empty() ? host(ports_.front()) : -1});
  return static_cast<std::uint32_t>(cluster_.nodes.size() - 1);
}

void Wiring::connect(std::uint32_t a, std::uint32_t b, const Cable& cable) {
  add_link(cluster_, {a, b, cable.bandwidth, cable.latency, cable.kind, 1}, true);
}

void add_link(Cluster& cluster, ClusterLink link, bool both_ways) {
  if (!(link.bandwidth.bytes_per_second > 0)) {
    throw Error(fmt::format("bandwidth: must be above 0 for the link from {} to {}",
                            cluster.nodes[link.from].name, cluster.nodes[link.to].name));
  }
  if (cluster.links.size() >= kMaxLinks) throw Error("must have at most 8,000,000 links");
  cluster.links.push_back(link);
  if (!both_ways) return;
  std::swap(link.from, link.to);
  cluster.links.push_back(link);
}

void Topology::describe_cable(Fields& fields) {
  fields.bandwidth("bandwidth", bandwidth_, "Bandwidth of each cable to a port, each way");
  fields.time("latency", latency_, "Time from one end of such a cable to the other", 0ns);
  fields.choice("kind", kind_, link_kind_names(), "Kind of the cables");
}

Cable Topology::cable() const { return {bandwidth_, latency_, link_kind_named(kind_)}; }

const std::vector<TopologyEntry>& topologies() {
  static const std::vector<TopologyEntry> entries = {
#define TOPOLOGY(name, summary) {#name, summary, make_##name},
#include "machine/cluster/topologies/topologies.def"
#undef TOPOLOGY
  };
  return entries;
}

const TopologyEntry* topology_named(std::string_view name) {
  for (const TopologyEntry& entry : topologies()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::unique_ptr<Topology> make_topology(std::string_view name) {
  if (const TopologyEntry* entry = topology_named(name)) return entry->make();
  std::vector<std::string_view> names;
  for (const TopologyEntry& entry : topologies()) names.push_back(entry.name);
  throw Error(fmt::format("must be one of {}, got \"{}\"{}", joined(names), name,
                          did_you_mean(name, names)));
}

}  // namespace foretrace
