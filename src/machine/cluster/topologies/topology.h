#pragma once

// A topology that connects ports with cables and switches. Each one has its own file and a line in
// topologies.def.

#include <memory>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "machine/cluster/topologies/wiring.h"

namespace foretrace {

class Topology : public Described {
 public:
  /// Adds the cables and switches. Throws Error if it cannot connect this number of ports.
  virtual void wire(Wiring& wiring) const = 0;

  /// The number of ports if the settings fix it; 0 for any number.
  virtual std::int64_t size() const { return 0; }

  /// Where hosts with this many ports each share less bandwidth than their ports have.
  virtual std::vector<FabricTier> tiers(std::int64_t) const { return {}; }

  /// Whether traffic passes through ports that are neither its source nor its target.
  virtual bool ports_relay() const { return false; }

 protected:
  /// Describes the settings of the cable that every port has.
  void describe_cable(Fields& fields);
  Cable cable() const;

 private:
  Bandwidth bandwidth_ = Cable{}.bandwidth;
  Nanoseconds latency_ = Cable{}.latency;
  std::string kind_ = "network";
};

struct TopologyEntry {
  std::string_view name, summary;
  std::unique_ptr<Topology> (*make)();
};

/// Sorted by name.
const std::vector<TopologyEntry>& topologies();

/// Returns nullptr if there is no topology of this name.
const TopologyEntry* topology_named(std::string_view name);

/// Throws Error with the nearest name if there is no such topology.
std::unique_ptr<Topology> make_topology(std::string_view name);

/// The kinds of links by name, for settings.
const std::vector<std::string_view>& link_kind_names();
LinkKind link_kind_named(std::string_view name);

#define TOPOLOGY(name, summary) std::unique_ptr<Topology> make_##name();
#include "machine/cluster/topologies/topologies.def"
#undef TOPOLOGY

}  // namespace foretrace
