#pragma once

// A machine as users describe it: the parts of a host, the number of hosts, and the links between
// them.
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

/// Cables between nodes that are given as name ranges.
struct LinkGroup final : Described {
  void describe(Fields& fields) override;
  std::string from, to;            ///< Name ranges, see name_range.h.
  std::string pattern = "blocks";  ///< blocks, cycle, all, mesh, ring: see describe().
  std::string kind = "other";
  Bandwidth bandwidth{};  ///< Of one cable, each way.
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
  std::string use, domain_use;  ///< Names of the topologies; empty if there is none.
  std::shared_ptr<Topology> network, domain;
  std::int64_t domain_hosts = 1;  ///< Hosts whose devices `domain` joins.
  Notes notes;                    ///< From importers; not written to files.
};

/// Throws Error, which names the place in the file.
MachineFile machine_from_json(nlohmann::json json);
/// Omits settings that have their default value.
nlohmann::json machine_to_json(MachineFile& machine);

/// Lays out all hosts and the links between them. The first `ranks` devices are placed, or all if
/// `ranks` is 0. Throws Error.
Cluster build_cluster(const MachineFile& machine, std::int64_t ranks);

/// Returns the latency of a link whose latency is not given, from end to end, including the devices
/// on the way. Recalled.
Nanoseconds usual_latency(LinkKind kind);

}  // namespace foretrace
