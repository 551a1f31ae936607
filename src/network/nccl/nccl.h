#pragma once

// Models how NCCL chooses algorithm, protocol and channels, as pure functions of its view of a
// system (src/graph/tuning.cc of NCCL 2.30.7; older releases have other constants):
//
//     time = latency + bytes / bandwidth,  the least over (algorithm, protocol)
//
// These are the estimates that NCCL makes in order to choose. They ignore copies within a rank's
// own memory, pipelines and the latencies that were measured, which expected_us() adds. CollNet is
// not modelled; PAT is considered only with one device per node, as in NCCL by default.

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretrace/cluster.h"
#include "network/collective.h"

namespace foretrace {

enum class NcclAlgorithm : std::uint8_t { tree, ring, nvls, nvls_tree, pat };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };

std::string_view to_string(NcclAlgorithm algorithm);
std::string_view to_string(NcclProtocol protocol);

struct NcclSystem {
  std::int64_t architecture = 90;  ///< 70 is Volta, 80 Ampere, 90 Hopper, 100 Blackwell.
  bool is_amd = false;             ///< AMD CPUs; otherwise Intel's are assumed.
  std::uint32_t ranks = 8;
  std::uint32_t nodes = 1;  ///< Groups of ranks that reach each other without a NIC.
  LinkKind intra = LinkKind::nvlink;
  bool copies_through_host = false;  ///< Devices of a node cannot write to each other's memory.
  std::uint32_t channels = 16;
  double channel_intra = 0, channel_inter = 0;  ///< GB/s of one channel.
  /// GB/s of the links between devices of a node; 0: the sum of the channels.
  double own_copy = 0;
  double graph_latency_us = 0;      ///< The latency of the NICs.
  std::uint32_t nvls_channels = 0;  ///< 0: no NVLink SHARP.
  double nvls_channel = 0;          ///< GB/s of one channel.
};

/// One combination of algorithm and protocol.
struct NcclPath {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double latency_us = 0;
  double bandwidth = 0;    ///< GB/s of nccl-tests' algbw, before the corrections by size.
  double hops_within = 0;  ///< Of a ring or tree: number of hops within hosts.
  double across_us = 0;    ///< Of latency_us: what the hops between hosts take.
};

/// Returns the paths that NCCL compares; empty for one rank, and for all-to-all and send/receive,
/// which NCCL does not tune. REQUIRES: ranks is a multiple of nodes.
std::vector<NcclPath> nccl_paths(Operation operation, const NcclSystem& system);

/// Returns NCCL's own estimate.
double estimate_us(const NcclPath& path, const NcclSystem& system, Operation operation,
                   Bytes bytes);

/// Returns the path with the lowest estimate. Throws Error if there is none.
NcclPath choose_path(Operation operation, const NcclSystem& system, Bytes bytes);

/// Returns the microseconds from the start of a call to its end after `hops` hops within a host, as
/// measured on devices of this architecture over NVLink; NCCL's own on Volta, and over PCIe for LL.
/// REQUIRES: the algorithm is a ring or a tree.
double host_latency_us(NcclAlgorithm algorithm, NcclProtocol protocol, LinkKind link,
                       std::int64_t architecture, double hops);

/// Returns the estimate with host_latency_us() in place of NCCL's latencies within hosts; plus, for
/// a ring with protocol Simple, half a step for the part that a rank copies between its own
/// buffers; and the loss of a pipeline between latency and bandwidth. Our fits: see constants.h.
double expected_us(const NcclPath& path, const NcclSystem& system, Operation operation,
                   Bytes bytes);

/// The channels that NCCL's search finds for a rank with `gigabytes` GB/s: the greatest speed of
/// its list that wastes least, then more channels with less each.
struct NcclChannels {
  std::uint32_t count = 1;
  double each = 0;  ///< GB/s
};
NcclChannels search_channels(double gigabytes, std::int64_t architecture, bool within_node);

}  // namespace foretrace
