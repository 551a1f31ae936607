#include "machine/cluster/topologies/topology.h"

#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {

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
