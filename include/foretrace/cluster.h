#pragma once

// The machine that a job with many devices runs on: hosts with their devices and NICs, switches,
// and the links between all of them.
//
//     host node0                     host node1          a device reaches one on another host
//     gpu0 -- pcie0 -- nic0 ---+--- nic0 -- ...          through the NIC nearest to it; two
//     gpu1 -- pcie1 -- nic1 -+ |                         devices of one host meet at the NVSwitch
//       \  /                 | leaf0
//     nvswitch               leaf1 ...
//
// A machine is described compactly (one host, how often it is repeated, the kind of network between
// hosts), as a JSON file or by the name of a preset with settings. A Cluster is the result.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// A host is its CPU, or the PCIe root complex there: a host with two sockets has two of them.
enum class NodeKind : std::uint8_t { host, device, nic, switch_ };
/// A cpu link joins sockets, or a device with its CPU (NVLink-C2C). The kinds are those that NCCL
/// has different latencies for.
enum class LinkKind : std::uint8_t { nvlink, pcie, cpu, network, other };

struct ClusterNode {
  std::string name;  ///< "node3/gpu0", "leaf2"; unique in its cluster.
  NodeKind kind = NodeKind::device;
  std::int32_t host = -1;  ///< Counted from 0; -1 for a switch outside of hosts.
};

/// One way: a full-duplex cable is two links.
struct ClusterLink {
  std::uint32_t from = 0, to = 0;  ///< Into Cluster::nodes.
  Bandwidth bandwidth{};           ///< All `count` cables together; above 0.
  Nanoseconds latency{0};
  LinkKind kind = LinkKind::other;
  std::uint32_t count = 1;  ///< Parallel cables that are used as one.
};

/// Facts that NCCL uses to choose an algorithm. Unknown ones are not set.
struct HostFacts {
  std::optional<std::int64_t> architecture;  ///< 70 is Volta, 80 Ampere, 90 Hopper, 100 Blackwell.
  std::string cpu;                           ///< "intel", "amd", "arm", "power"; "" is unknown.
  std::optional<bool> nvls;                  ///< Reduces in NVSwitches (NVLink SHARP).
  std::optional<bool> sharp;                 ///< Reduces in switches of the network.
  std::optional<Bandwidth> nic_bandwidth;    ///< All NICs of one host together, one way.
  std::int32_t devices_per_host = 0;
  /// Devices that reach each other without a NIC: those of one host, or of one GB200 NVL72 rack.
  std::int32_t devices_per_nvlink_domain = 0;
};

/// More than this many hosts in a row reach each other with only this share of their NICs'
/// bandwidth, as switches above them have fewer cables (oversubscription).
struct FabricTier {
  std::int64_t hosts = 0;
  double share = 1;
};

struct Cluster {
  std::string name, source;  ///< Where the figures are from, or that they are recalled.
  std::string device;        ///< For find_device(); "" is unknown.
  std::vector<ClusterNode> nodes;
  std::vector<ClusterLink> links;
  std::vector<std::uint32_t> placement;  ///< The device of each rank, into `nodes`.
  std::int32_t hosts = 0;
  /// Devices pass on what others send, as in a ring or torus of devices, or over the NVLinks of a
  /// DGX-1V. Otherwise only switches, NICs and hosts do.
  bool devices_relay = false;
  HostFacts facts;
  std::vector<FabricTier> tiers;  ///< Empty if the network between hosts is never the bottleneck.
  Notes notes;                    ///< Parts that an importer left out or assumed.
};

/// Returns the share of their NICs' bandwidth that `hosts` in a row have among each other.
double fabric_share(const std::vector<FabricTier>& tiers, std::int64_t hosts);

/// A preset, or a topology that joins hosts of one device each.
struct ClusterEntry {
  std::string_view name, summary;
};
/// Sorted by name.
const std::vector<ClusterEntry>& clusters();

/// "dgx-h100", "dgx-h100:hosts=16", "torus:shape=4x4x4,bandwidth=50GB/s,latency=500ns"; or the path
/// of our JSON, of NCCL's topology (.xml), or of ASTRA-sim's network (.yml, .yaml). With `ranks`, a
/// preset whose number of hosts is not given has as many hosts as they need, and only the first
/// `ranks` devices are placed. Throws Error on an unknown name, with the nearest one; if a machine
/// has fewer devices than `ranks`; on a bandwidth of 0, a quantity without its unit, or a node that
/// does not exist.
Cluster find_cluster(std::string_view name_or_path, std::int64_t ranks = 0);

/// The same machine as our compact JSON; find_cluster() of that, as a file, gives the same cluster.
nlohmann::json cluster_json(std::string_view name_or_path, std::int64_t ranks = 0);

/// A JSON Schema (draft-07) of our files.
nlohmann::json cluster_schema();

std::string_view to_string(NodeKind kind);
std::string_view to_string(LinkKind kind);

}  // namespace foretrace
