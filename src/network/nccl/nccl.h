#pragma once

// How NCCL chooses algorithm, protocol and channels, as pure functions of what it knows of a system
// (src/graph/tuning.cc of NCCL 2.30.7; older releases have other constants):
//
//     time = latency + bytes / bandwidth,  the least over (algorithm, protocol)
//
// These are estimates that NCCL makes in order to choose. They ignore what a rank copies within its
// own memory: expected_us() adds that. Without CollNet; PAT only with one device per node, as
// NCCL by default.

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretrace/cluster.h"
#include "foretrace/collective.h"

namespace foretrace {

enum class NcclAlgorithm : std::uint8_t { tree, ring, nvls, nvls_tree, pat };
enum class NcclProtocol : std::uint8_t { ll, ll128, simple };

std::string_view to_string(NcclAlgorithm algorithm);
std::string_view to_string(NcclProtocol protocol);

struct NcclSystem {
  std::int64_t architecture = 90;  ///< 70 is Volta, 80 Ampere, 90 Hopper, 100 Blackwell.
  bool is_amd = false;             ///< The CPUs; otherwise as Intel's.
  std::uint32_t ranks = 8;
  std::uint32_t nodes = 1;  ///< Groups of ranks that reach each other without a NIC.
  LinkKind intra = LinkKind::nvlink;
  std::uint32_t channels = 16;
  double channel_intra = 0, channel_inter = 0;  ///< GB/s of one channel.
  double own_copy = 0;  ///< GB/s of the links between devices of a node; 0: as all channels.
  double graph_latency_us = 0;      ///< The latency of the NICs.
  std::uint32_t nvls_channels = 0;  ///< 0: no NVLink SHARP.
  double nvls_channel = 0;          ///< GB/s of one channel.
};

/// One way to run a collective.
struct NcclPath {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  double latency_us = 0;
  double bandwidth = 0;  ///< GB/s of nccl-tests' algbw, before the corrections by size.
};

/// The ways that NCCL compares; none for all-to-all and send/receive, which it does not tune, and
/// for one rank. REQUIRES: ranks is a multiple of nodes.
std::vector<NcclPath> nccl_paths(Operation operation, const NcclSystem& system);

/// NCCL's estimate.
double estimate_us(const NcclPath& path, const NcclSystem& system, Operation operation,
                   Bytes bytes);

/// The path with the least estimate. Throws Error where there is none.
NcclPath choose_path(Operation operation, const NcclSystem& system, Bytes bytes);

/// The estimate, and in a ring with protocol Simple also half a step for the part that a rank
/// copies from its own buffer to its own, and within a node what a pipeline loses between latency
/// and bandwidth: kOwnCopy and kMixed of constants.h, which are ours.
double expected_us(const NcclPath& path, const NcclSystem& system, Operation operation,
                   Bytes bytes);

/// The channels that NCCL's search finds where a rank reaches `gigabytes` GB/s: the greatest speed
/// of its list that wastes least, then more channels of less each.
struct NcclChannels {
  std::uint32_t count = 1;
  double each = 0;  ///< GB/s
};
NcclChannels search_channels(double gigabytes, std::int64_t architecture, bool within_node);

}  // namespace foretrace
