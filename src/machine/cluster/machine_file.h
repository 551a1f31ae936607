#pragma once

// A machine as people write it: what a host has, how many hosts there are, and what joins them.
//
//     {"name": "two-boxes", "hosts": 2,
//      "host": {"devices": ["gpu[0-3]"], "nics": ["nic0"], "cpus": ["cpu0"],
//               "links": [{"from": "gpu[0-3]", "to": "cpu0", "kind": "pcie", "bandwidth":
//               "24GB/s"},
//                         {"from": "nic0", "to": "cpu0", "kind": "pcie", "bandwidth": "24GB/s"}]},
//      "network": {"use": "switch", "bandwidth": "100Gb/s", "latency": "1us"}}

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/cluster.h"
#include "foretrace/fields.h"
#include "machine/cluster/topologies/topology.h"

namespace foretrace {

/// Cables between nodes that are named by ranges.
struct LinkGroup final : Described {
  void describe(Fields& fields) override;
  std::string from, to;            ///< As in name_range.h.
  std::string pattern = "blocks";  ///< blocks, cycle, all, mesh, ring: see describe().
  std::string kind = "other";
  Bandwidth bandwidth{};  ///< One cable, each way.
  std::optional<Nanoseconds> latency;
  std::int64_t count = 1;
  bool one_way = false;
};

struct HostModel final : Described {
  void describe(Fields& fields) override;
  std::vector<std::string> devices = {"gpu0"}, nics, switches, cpus;
  std::vector<LinkGroup> links;
};

struct FactSettings final : Described {
  void describe(Fields& fields) override;
  std::optional<std::int64_t> architecture;
  std::string cpu = "unknown", nvls = "unknown", sharp = "unknown";
};

struct MachineFile final : Described {
  void describe(Fields& fields) override;
  std::string name, source, device;
  std::int64_t hosts = 1;
  bool devices_relay = false;
  FactSettings facts;
  HostModel host;
  std::vector<std::string> switches, placement;
  std::vector<LinkGroup> links;
  std::string use, domain_use;  ///< Names of the topologies; empty for none.
  std::shared_ptr<Topology> network, domain;
  std::int64_t domain_hosts = 1;  ///< Hosts whose devices `domain` joins.
  Notes notes;                    ///< From importers; not written.
};

/// Throws Error with the place.
MachineFile machine_from_json(nlohmann::json json);
/// Without what is as by default.
nlohmann::json machine_to_json(MachineFile& machine);

/// Lays out all hosts and what joins them; the first `ranks` devices are placed, or all for 0.
/// Throws Error.
Cluster laid_out(const MachineFile& machine, std::int64_t ranks);

/// The latency of a link where nobody says so: recalled, from the end of one wire to the end of the
/// other, with what is passed on the way.
Nanoseconds usual_latency(LinkKind kind);

}  // namespace foretrace
