#pragma once

// NCCL's sends and receives: all-to-all, and a ring of neighbors. NCCL does not tune them, but it
// limits how many channels serve one peer, and chooses the protocol by the size of a message:
//
//     t = latency + (peers on other nodes - 1) a + w + m sqrt(latency w)     m only within a node
//     w = max(bytes within / B_within, bytes across / B_across)
//
// B of a ring of neighbors is also limited by the channels that serve one peer: see below.
//
// It ignores that GPUs without a NIC of their own hand on to those that have one (PXN).

#include "network/nccl/system_of.h"

namespace foretrace {

/// Channels that serve one peer on another node: two, or one where two for each rank would be more
/// than four times as many as there are. NCCL has two channels for each NIC of a node, and twice as
/// many for up to four NICs of at least 25 GB/s, which it doubles.
std::uint32_t channels_per_peer(std::uint32_t ranks, std::uint32_t nics, double nic_gigabytes);

/// GB/s that one or two channels carry to another node, which is the most that one peer gets.
/// Measured on H100 nodes with 400 Gb/s NICs: one has 24.9 to 26.2, two have 39.4 to 44.8.
double peer_rate(std::uint32_t channels);

/// GB/s at which a rank copies its own part of an all-to-all across nodes: NCCL gives it as many
/// channels as another peer, and other peers wait. Measured: 182 to 206 GB/s with two of them.
double own_copy_rate(std::uint32_t channels);

/// GB/s to one peer on the same node. All channels are divided among the ranks, and a message gets
/// more of them beyond 16 MiB for each. One has 20 GB/s, measured on H100.
double local_peer_rate(std::uint32_t ranks, double message);

/// Microseconds. REQUIRES: the operation is all_to_all or send_receive.
double sends_us(Operation operation, const RankPlaces& places, Bytes bytes);

}  // namespace foretrace
