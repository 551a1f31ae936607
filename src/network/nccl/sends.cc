#include "network/nccl/sends.h"

#include <algorithm>
#include <cmath>

#include "network/nccl/constants.h"

namespace foretrace {
namespace {

constexpr NcclAlgorithm kRing = NcclAlgorithm::ring;  ///< Sends start like a ring.
constexpr double kMinLlBytes = 16 << 10;  ///< NCCL_P2P_LL_THRESHOLD: larger messages use Simple.
constexpr double kPeerRate = 25, kPeerRateOfTwo = 44;  ///< GB/s; see peer_rate().
constexpr double kOwnCopyRate = 100;                   ///< GB/s of a channel; see own_copy_rate().
constexpr double kLocalChannelRate = 20;               ///< GB/s; see local_peer_rate().
constexpr std::uint32_t kLocalChannels = 32;           ///< Over NVLink.
/// Bytes per channel; larger messages get more channels.
constexpr double kMaxOfChannel = 32 * (512 << 10);
constexpr double kDoubledNic = 25;  ///< GB/s from which NCCL doubles a NIC's channels.
/// Latency of each further peer on another node, relative to the first. Our fit: 10 H100 nodes have
/// 9 to 12 us of 14 with one GPU per node, and 9 with four; for LL the same share of its lower
/// latency is used.
constexpr double kPeer = .65;

/// Data volumes in kilobytes, so that division by GB/s gives microseconds.
struct Volumes {
  double within = 0, across = 0, message = 0;
  double peers = 0;  ///< On other nodes.
};

Volumes volumes_of(Operation operation, const RankPlaces& places, double n) {
  const double g = places.per_node, p = places.ranks, nodes = places.nodes;
  const bool many = places.nodes > 1;
  if (operation == Operation::all_to_all)
    return {n / p * (g - 1 + nccl::kOwnCopy), n * (p - g) / p, n / p, (nodes - 1) * g};
  return {p > 1 ? n : 0, many ? n : 0, n, many ? 1.0 : 0.0};
}

/// The time for all that a rank of the last node, which may have fewer than the others, sends to
/// other nodes: more of its peers are there, and it shares fewer NICs with fewer ranks.
double across_from_last(const RankPlaces& places, double nic, double message) {
  const double p = places.ranks, full = (places.nodes - 1.0) * places.per_node;
  const double last = std::max(1.0, p - full);
  return message * (p - last) / (std::min(places.inter, last * nic) / last);
}

}  // namespace

std::uint32_t channels_per_peer(std::uint32_t ranks, std::uint32_t nics, double nic_gigabytes) {
  const bool doubled = nics <= 4 && nic_gigabytes >= kDoubledNic;
  const std::uint32_t channels = (doubled ? 4 : 2) * std::max(1U, nics);
  return 2 * ranks > 4 * channels ? 1 : 2;
}

double peer_rate(std::uint32_t channels) { return channels == 1 ? kPeerRate : kPeerRateOfTwo; }

double own_copy_rate(std::uint32_t channels) { return kOwnCopyRate * channels; }

double local_peer_rate(std::uint32_t ranks, double message) {
  std::uint32_t channels = kLocalChannels;
  while (channels > 1 && channels * ranks > kLocalChannels) channels /= 2;
  while (channels < kLocalChannels && message / channels > kMaxOfChannel) channels *= 2;
  return kLocalChannelRate * channels;
}

double sends_us(Operation operation, const RankPlaces& places, std::int64_t architecture,
                Bytes bytes) {
  const Volumes volumes = volumes_of(operation, places, static_cast<double>(bytes.count) / 1e3);
  const NcclProtocol protocol =
      volumes.message * 1e3 <= kMinLlBytes ? NcclProtocol::ll : NcclProtocol::simple;
  const double slower = protocol == NcclProtocol::ll ? 2 : 1;  // A flag for every four bytes.
  double within = 0;
  if (places.intra > 0) {
    double rate = places.intra;
    if (operation == Operation::send_receive && places.nodes == 1 &&
        places.kind == LinkKind::nvlink)
      rate = std::min(rate, local_peer_rate(places.ranks, volumes.message * 1e3));
    within = slower * volumes.within / rate;
  }
  if (places.nodes == 1) {
    const double peers = operation == Operation::all_to_all ? places.per_node - 1.0 : 1;
    const double latency =
        host_latency_us(kRing, protocol, places.kind, architecture, 1 + nccl::kPeerHop * peers);
    return latency + within + nccl::kMixedSends * std::sqrt(latency * within);
  }
  const double hop = nccl::kHopLatency[2][nccl::index(kRing)][nccl::index(protocol)];
  const double latency =
      host_latency_us(kRing, protocol, places.kind, architecture, places.intra > 0 ? 1 : 0) +
      places.extra_latency_us * (protocol == NcclProtocol::simple ? 2 : 1);
  const double nic = places.inter / std::max(1U, places.nics);
  const std::uint32_t channels = channels_per_peer(places.ranks, places.nics, nic);
  double across = 0;
  if (operation == Operation::send_receive) {
    across = slower * volumes.across / std::min(nic, peer_rate(channels));
  } else {
    across = slower * std::max(volumes.across / (places.inter / places.per_node),
                               across_from_last(places, nic, volumes.message)) +
             volumes.message / own_copy_rate(channels);
  }
  return latency + hop + (volumes.peers - 1) * kPeer * hop + std::max(within, across);
}

}  // namespace foretrace
