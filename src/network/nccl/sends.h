#pragma once

// NCCL's sends and receives: all-to-all, and a ring of neighbors. NCCL does not tune them, but
// limits the number of channels per peer and chooses the protocol by message size:
//
//     t = latency + (peers on other nodes - 1) a + w + m sqrt(latency w)     m only within a node,
//                                                             where latency grows with the peers
//     w = max(bytes within / B_within, bytes across / B_across)
//
// For a ring of neighbors, B is also limited by the channels that serve one peer: see below.
//
// The model ignores that GPUs without their own NIC forward traffic through GPUs that have one
// (PXN).

#include "network/nccl/nccl_system.h"

namespace foretrace {

/// Returns the number of channels that serve one peer on another node: two, or one if two per rank
/// would exceed four times the available channels. NCCL has two channels per NIC of a node, and
/// doubles this for up to four NICs of at least 25 GB/s.
std::uint32_t channels_per_peer(std::uint32_t ranks, std::uint32_t nics, double nic_gigabytes);

/// Returns the GB/s that one or two channels carry to another node, the limit for one peer.
/// Measured on H100 nodes with 400 Gb/s NICs: one channel reaches 24.9 to 26.2, two reach 39.4 to
/// 44.8.
double peer_rate(std::uint32_t channels);

/// Returns the GB/s at which a rank copies its own part of an all-to-all across nodes: NCCL gives
/// this copy as many channels as another peer, and other peers wait. Measured: 182 to 206 GB/s with
/// two channels.
double own_copy_rate(std::uint32_t channels);

/// Returns the GB/s to one peer on the same node. All channels are divided among the ranks, and a
/// message gets more of them for every 16 MiB. One channel reaches 20 GB/s, measured on H100.
double local_peer_rate(std::uint32_t ranks, double message);

/// Returns microseconds. REQUIRES: the operation is all_to_all or send_receive.
double sends_us(Operation operation, const RankPlaces& places, std::int64_t architecture,
                Bytes bytes);

}  // namespace foretrace
