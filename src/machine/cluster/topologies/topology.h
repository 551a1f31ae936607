#pragma once

// A topology that connects ports with cables and switches. Each one has its own file and a line in
// topologies.def.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/cluster.h"
#include "foretrace/fields.h"

namespace foretrace {

/// Larger clusters would not fit in the memory of an ordinary host.
inline constexpr std::size_t kMaxNodes = 4'000'000;

/// A kind of cable; each direction has the full bandwidth.
struct Cable {
  Bandwidth bandwidth{50e9};
  Nanoseconds latency{1000};
  LinkKind kind = LinkKind::network;
};

/// The input of a topology: the ports to connect, which are the NICs of all hosts or the devices of
/// hosts without NICs, and the cluster that receives the switches and cables.
class Wiring {
 public:
  /// `ports` are in the order of hosts, `per_host` ports of each. Names of switches begin with
  /// `prefix`.
  Wiring(Cluster& cluster, std::vector<std::uint32_t> ports, std::size_t per_host,
         std::string prefix = {})
      : cluster_(cluster), ports_(std::move(ports)), per_host_(per_host), prefix_(prefix) {}

  const std::vector<std::uint32_t>& ports() const { return ports_; }
  std::size_t per_host() const { return per_host_; }

  /// Returns a wiring for some of the ports.
  Wiring part(std::vector<std::uint32_t> ports, const std::string& prefix) const {
    return {cluster_, std::move(ports), 1, prefix_ + prefix};
  }

  /// Adds a switch outside all hosts, or in the host if all ports are devices of one host.
  std::uint32_t add_switch(std::string_view name, std::size_t number);
  void connect(std::uint32_t a, std::uint32_t b, const Cable& cable);

 private:
  Cluster& cluster_;
  std::vector<std::uint32_t> ports_;
  std::size_t per_host_;
  std::string prefix_;
};

/// Appends a link for each direction, or one if not `both_ways`. Throws Error, naming both ends, if
/// the bandwidth is 0.
void add_link(Cluster& cluster, ClusterLink link, bool both_ways);

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
