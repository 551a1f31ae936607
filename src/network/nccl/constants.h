#pragma once

// The tables of NCCL 2.30.7 (src/graph/tuning.cc) in microseconds and GB/s. Architectures (rows)
// are Volta, Ampere, Hopper, Blackwell; node counts (columns) are 1, 2, 4 and more; protocols
// (columns) are LL, LL128, Simple.

#include <cstddef>

namespace foretrace::nccl {

/// Row or column of a table.
template <class Enum>
constexpr std::size_t index(Enum value) {
  return static_cast<std::size_t>(value);
}

inline constexpr double kBaseLatency[5][3] = {
    {6.8, 14, 8.4},  // tree
    {6.6, 14, 8.4},  // ring
    {0, 0, 0},       // NVLS
    {0, 0, 0},       // NVLS tree
    {8, 8, 8},       // PAT
};

/// By link (NVLink, PCI, network), then by algorithm and protocol as above.
inline constexpr double kHopLatency[3][5][3] = {
    {{.6, 1.25, 4}, {.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}},
    {{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 0}, {0, 0, 0}, {0, 0, 4}},
    {{5, 8.5, 14}, {2.7, 4, 14}, {0, 0, 18}, {0, 0, 20.9}, {0, 0, 14}},
};

inline constexpr double kMaxLl[4][3] = {
    {39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
/// GB/s of a channel.
inline constexpr double kRingLl128[4][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}};
inline constexpr double kTreeLl128[4][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
inline constexpr double kTree[4][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
inline constexpr double kNvlsTree[4][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}};
inline constexpr double kNvlsEfficiency[4] = {0, 0, .85, .74};

/// Factors on a tree's bandwidth, by log2(bytes / 64).
inline constexpr std::size_t kTreeSizes = 23;
inline constexpr double kTreeCorrection[3][kTreeSizes] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
};

/// The extra latency of Ring Simple across nodes from 64 bytes per channel and rank on.
inline constexpr double kPlateau = 1.4, kPlateauBeforeAmpere = 1.9;
inline constexpr double kPlateauBytes = 64;

inline constexpr double kRingShare = .92;  ///< Share of LL128 on rings and trees.
inline constexpr double kPatShare = .75;
/// A tree with LL reaches its bandwidth divided by this.
inline constexpr double kTreeLlShare = 3.8;

/// Speeds of one channel in GB/s that NCCL's search tries.
inline constexpr double kSpeeds[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
inline constexpr double kSpeedsHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
/// Only the first and the last are known; those between are recalled.
inline constexpr double kSpeedsBlackwell[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
inline constexpr double kMaxChannels = 32;
inline constexpr double kMaxChannelsBeforeBlackwell = 24;  ///< Recalled, for NVSwitch.

/// Share of a ring's step that the copy within a rank's own memory takes. Our fit: the rows of 512
/// MiB and more of one H100 node have 0.2 to 0.5.
inline constexpr double kOwnCopy = .5;

// NCCL's latencies weigh its choices; they are not times. What follows is our fit to calls within a
// host of 2 to 8 A100, 2 to 8 H100 and 2 to 4 GB200 (ai-dynamo/aiconfigurator, NCCL 2.23 to 2.29,
// which agree). Two numbers for each device, three for Hopper; the others are common. With those
// common numbers from the other devices and its own from all-gathers, a device's other calls below
// 1 MiB are off by 3 to 7 % in the median (NCCL's model: 8 to 31 %), from 1 MiB on by 6 to 11 % (8
// to 11 %). Hopper's hold on two other machines: 3 %.

/// Start of a call, and a hop over NVLink, relative to NCCL's. Nobody measured Volta.
inline constexpr double kMeasuredStart[4] = {1, 1.47, .83, 1.26},
                        kMeasuredHop[4] = {1, 1.47, 1.26, 2.22};
/// The same for Simple, in addition: its hops take a little longer than those of LL, not six times.
inline constexpr double kSimpleStart = 1.13, kSimpleHop = .25;
/// Time of the bandwidth term of rings with Simple: Hopper's NVLinks carry more than NCCL assumes.
inline constexpr double kMeasuredWire[4] = {1, 1, .93, 1};
/// Latency of a send for each peer on the host, in hops, in addition to one hop.
inline constexpr double kPeerHop = .32;
/// Latency and bandwidth term add up to more than their sum, by this factor times the square root
/// of their product: rings with Simple and sends within a host, and NVLS. Trees across hosts have
/// the factor of these rings; rings and NVLS trees there are a compromise of 10 hosts with 4 H100
/// (0 and .3) and 2 hosts with 8 B200 or H100 (.5 to 1). With these, all-reduces of two full hosts
/// that others published (Nebius H100, Azure A100, Vultr B200; none was used above) are off by 10,
/// 6 and 5 % in the median (23 to 29 % with NCCL's latencies), gathers there by 17 % (36 %).
inline constexpr double kMixed = .75, kMixedNvls = .3, kMixedSends = .62;
inline constexpr double kMixedRingAcross = .25, kMixedNvlsTree = .5;

}  // namespace foretrace::nccl
