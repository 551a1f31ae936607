#include "network/nccl/nccl.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <span>

#include "foretrace/error.h"
#include "network/nccl/constants.h"

namespace foretrace {
namespace {

using namespace nccl;

constexpr std::size_t kLl = 0, kLl128 = 1, kSimple = 2;
constexpr double kSteps128 = 120.0 / 128;  ///< Share of data in the lines of LL128.
constexpr double kOneNodeTree128 = 7.0 / 9;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

std::size_t row_of(std::int64_t architecture) {
  return architecture >= 100 ? 3 : architecture >= 90 ? 2 : architecture >= 80 ? 1 : 0;
}

/// Along a ring, instead of around it.
bool flows_once(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce;
}

double steps_of(Operation operation, double ranks) {
  switch (operation) {
    case Operation::all_reduce:
      return 2 * (ranks - 1);
    case Operation::all_gather:
    case Operation::reduce_scatter:
      return ranks - 1;
    default:
      return ranks;
  }
}

/// Computes latency and bandwidth of each path.
class Tuner {
 public:
  Tuner(Operation operation, const NcclSystem& system)
      : operation_(operation),
        system_(system),
        row_(row_of(system.architecture)),
        column_(system.nodes == 1   ? 0
                : system.nodes == 2 ? 1
                                    : 2),
        per_node_(system.ranks / std::max(1U, system.nodes)),
        network_(system.nodes > 1 ? system.channels * system.channel_inter : kUnbounded),
        bus_(system.nodes > 2 ? network_
                              : std::min(system.channels * system.channel_intra, 2 * network_)),
        ring_(std::min(bus_, network_)) {}

  std::vector<NcclPath> paths() const {
    std::vector<NcclPath> paths;
    for (std::size_t protocol = 0; protocol < 3; ++protocol) {
      if (protocol == kLl128 && system_.intra != LinkKind::nvlink) continue;
      for (const NcclAlgorithm algorithm :
           {NcclAlgorithm::tree, NcclAlgorithm::ring, NcclAlgorithm::nvls, NcclAlgorithm::nvls_tree,
            NcclAlgorithm::pat}) {
        if (!serves(algorithm, protocol)) continue;
        const Hops hops = hops_of(algorithm, protocol);
        paths.push_back({algorithm, static_cast<NcclProtocol>(protocol),
                         latency(algorithm, protocol, hops), bandwidth(algorithm, protocol),
                         hops.within, hops.across * hops.inter});
      }
    }
    return paths;
  }

 private:
  double steps() const { return steps_of(operation_, system_.ranks); }

  bool serves(NcclAlgorithm algorithm, std::size_t protocol) const {
    const bool reduces = operation_ == Operation::all_reduce, one_node = system_.nodes == 1;
    const bool nvls = system_.nvls_channels > 0 && reduces && protocol == kSimple;
    switch (algorithm) {
      case NcclAlgorithm::ring:
        return true;
      case NcclAlgorithm::tree:
        return reduces;
      case NcclAlgorithm::nvls:
        return nvls && one_node && system_.ranks > 2;
      case NcclAlgorithm::nvls_tree:
        return nvls && !one_node && per_node_ > 2;
      case NcclAlgorithm::pat:
        return protocol == kSimple && !one_node && per_node_ == 1 && gathers();
    }
    return false;
  }

  bool gathers() const {
    return operation_ == Operation::all_gather || operation_ == Operation::reduce_scatter;
  }

  double hop(std::size_t link, NcclAlgorithm algorithm, std::size_t protocol) const {
    return kHopLatency[link][index(algorithm)][protocol];
  }

  struct Hops {
    double within = 0, across = 0;  ///< Numbers along the path.
    double inter = 0;               ///< Microseconds of one between nodes.
  };

  Hops hops_of(NcclAlgorithm algorithm, std::size_t protocol) const {
    const double nodes = system_.nodes, levels = std::log2(nodes);
    const bool is_ring = algorithm == NcclAlgorithm::ring;
    // With one device per node a ring's network hops equal a tree's, which is what NCCL measured.
    const NcclAlgorithm network = is_ring && per_node_ == 1 ? NcclAlgorithm::tree : algorithm;
    const double inter =
        hop(2, network, protocol) + system_.graph_latency_us * (protocol == kSimple ? 2 : 1);
    if (!is_ring) return {2. * (per_node_ - 1), 2 * levels, inter};
    // A broadcast and a reduce flow along the ring once: recalled.
    if (flows_once(operation_)) return {1, nodes > 1 ? 1. : 0, inter};
    const double laps = operation_ == Operation::all_reduce ? 2 : 1;
    const double across = laps * (nodes - 1);
    return {steps() - across, across, inter};
  }

  double latency(NcclAlgorithm algorithm, std::size_t protocol, const Hops& hops) const {
    const double intra = hop(system_.intra == LinkKind::nvlink ? 0 : 1, algorithm, protocol);
    const double base = kBaseLatency[index(algorithm)][protocol];
    switch (algorithm) {
      case NcclAlgorithm::ring: {
        const double overhead = system_.nodes == 1 || flows_once(operation_)
                                    ? 0
                                    : (system_.is_amd ? 2.0 : 1.0) * (protocol == kSimple ? 3 : 1);
        return base + hops.within * std::max(intra, overhead) + hops.across * hops.inter;
      }
      case NcclAlgorithm::tree:
        return base + hops.within * intra + hops.across * hops.inter;
      case NcclAlgorithm::nvls:
        return base + intra;
      case NcclAlgorithm::nvls_tree:
        return base + intra + hops.across * hops.inter;
      case NcclAlgorithm::pat:
        return base + hops.across / 2 * hops.inter / 3.5 + 2.8 * system_.ranks;
    }
    return base;
  }

  double bandwidth(NcclAlgorithm algorithm, std::size_t protocol) const {
    const double ranks = system_.ranks;
    switch (algorithm) {
      case NcclAlgorithm::ring:
        return ring_bus(protocol) * ranks / steps();
      case NcclAlgorithm::tree:
        return tree_bus(protocol) / 2;
      // Each rank's port carries the data about once; checked against 275 GB/s on 8 H100.
      case NcclAlgorithm::nvls:
        return system_.nvls_channels * system_.nvls_channel * kNvlsEfficiency[row_] * (ranks - 1) /
               ranks;
      case NcclAlgorithm::nvls_tree:
        return nvls_tree();
      case NcclAlgorithm::pat:
        return std::min(ring_ * kPatShare, network_) * ranks / steps();
    }
    return bus_;
  }

  double nvls_tree() const {
    const double tuned = std::min(bus_, system_.nvls_channels * kNvlsTree[row_][column_]) / 2;
    if (system_.nodes > 2) return tuned;
    // Each of two nodes sends what it has reduced to the other once, and ports carry what they do
    // in one node: measured, 467 to 478 GB/s of nccl-tests' busbw on two hosts of 8 H100.
    const double ports = system_.channels * system_.channel_intra * kNvlsEfficiency[row_];
    return std::max(tuned, std::min(ports * (per_node_ - 1) / per_node_, network_));
  }

  double most_ll() const {
    const std::size_t row = column_ == 0 ? row_ : system_.is_amd ? 1 : 0;
    return kMaxLl[row][column_];
  }

  double ring_bus(std::size_t protocol) const {
    if (protocol == kLl) return std::min(most_ll(), ring_ / 2);
    if (protocol == kLl128)
      return std::min(kRingShare * ring_, system_.channels * kRingLl128[row_][column_]);
    return ring_;
  }

  double tree_bus(std::size_t protocol) const {
    const double plain = std::min(kRingShare * bus_, system_.channels * kTree[row_][column_]);
    if (protocol == kLl) return std::min(plain / kTreeLlShare, most_ll());
    if (protocol == kSimple) return plain;
    return std::min(plain * (column_ == 0 ? kOneNodeTree128 : kSteps128),
                    system_.channels * kTreeLl128[row_][column_]);
  }

  Operation operation_;
  const NcclSystem& system_;
  std::size_t row_, column_;
  std::uint32_t per_node_;
  double network_;  ///< Limit on the bandwidth of all channels between nodes.
  /// Bandwidth of all channels in a tree; by NCCL's rule, two GB/s of it give one GB/s of the
  /// result. Between two nodes each NIC sends every byte only once, so that twice its bandwidth
  /// counts.
  double bus_;
  double ring_;  ///< Bandwidth of all channels in a ring.
};

}  // namespace

std::string_view to_string(NcclAlgorithm algorithm) {
  static constexpr std::string_view kNames[] = {"Tree", "Ring", "NVLS", "NVLSTree", "PAT"};
  return kNames[index(algorithm)];
}

std::string_view to_string(NcclProtocol protocol) {
  static constexpr std::string_view kNames[] = {"LL", "LL128", "Simple"};
  return kNames[index(protocol)];
}

std::vector<NcclPath> nccl_paths(Operation operation, const NcclSystem& system) {
  if (operation == Operation::all_to_all || operation == Operation::send_receive) return {};
  if (system.ranks < 2) return {};
  return Tuner(operation, system).paths();
}

double estimate_us(const NcclPath& path, const NcclSystem& system, Operation operation,
                   Bytes bytes) {
  const auto count = static_cast<double>(bytes.count);
  double bandwidth = path.bandwidth, latency = path.latency_us;
  if (path.algorithm == NcclAlgorithm::tree && bytes.count >= 64) {
    const auto size =
        static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes.count) / 64)) - 1;
    if (size < kTreeSizes) bandwidth *= kTreeCorrection[index(path.protocol)][size];
  }
  const bool plateau = path.algorithm == NcclAlgorithm::ring &&
                       path.protocol == NcclProtocol::simple && system.nodes > 1 &&
                       operation == Operation::all_reduce &&
                       count / (system.channels * system.ranks) >= kPlateauBytes;
  if (plateau) latency *= system.architecture < 80 ? kPlateauBeforeAmpere : kPlateau;
  return latency + count / (1e3 * bandwidth);
}

NcclPath choose_path(Operation operation, const NcclSystem& system, Bytes bytes) {
  const std::vector<NcclPath> paths = nccl_paths(operation, system);
  if (paths.empty())
    throw Error(fmt::format("NCCL has no algorithm to choose for {} of {} ranks",
                            to_string(operation), system.ranks));
  return *std::min_element(paths.begin(), paths.end(), [&](const NcclPath& a, const NcclPath& b) {
    return estimate_us(a, system, operation, bytes) < estimate_us(b, system, operation, bytes);
  });
}

double host_latency_us(NcclAlgorithm algorithm, NcclProtocol protocol, LinkKind link,
                       std::int64_t architecture, double hops) {
  const bool is_nvlink = link == LinkKind::nvlink, is_simple = protocol == NcclProtocol::simple;
  const std::size_t row = is_nvlink ? row_of(architecture) : 0;
  const std::size_t way = index(algorithm), form = index(protocol);
  return kMeasuredStart[row] * (is_simple ? kSimpleStart : 1) * kBaseLatency[way][form] +
         hops * kMeasuredHop[row] * (is_simple ? kSimpleHop : 1) *
             kHopLatency[is_nvlink ? 0 : 1][way][form];
}

namespace {

double mixed_share(const NcclPath& path, const NcclSystem& system) {
  const bool is_one = system.nodes == 1;
  switch (path.algorithm) {
    case NcclAlgorithm::tree:
      return is_one ? 0 : kMixed;
    case NcclAlgorithm::ring:
      if (!is_one) return system.ranks > system.nodes ? kMixedRingAcross : 0;
      return path.protocol == NcclProtocol::simple ? kMixed : 0;
    case NcclAlgorithm::nvls:
      return kMixedNvls;
    case NcclAlgorithm::nvls_tree:
      return kMixedNvlsTree;
    case NcclAlgorithm::pat:
      return 0;
  }
  return 0;
}

}  // namespace

double expected_us(const NcclPath& path, const NcclSystem& system, Operation operation,
                   Bytes bytes) {
  const bool is_simple_ring =
      path.algorithm == NcclAlgorithm::ring && path.protocol == NcclProtocol::simple;
  const bool is_tree = path.algorithm == NcclAlgorithm::tree;
  const bool is_one = system.nodes == 1;
  const double latency = is_tree || path.algorithm == NcclAlgorithm::ring
                             ? host_latency_us(path.algorithm, path.protocol, system.intra,
                                               system.architecture, path.hops_within) +
                                   path.across_us
                             : path.latency_us;
  double wire = estimate_us(path, system, operation, bytes) - path.latency_us;
  if (is_simple_ring && !flows_once(operation)) {
    // The copy runs at the speed of the links between devices of one node, whatever limits the
    // ring.
    const double bus = system.own_copy > 0
                           ? system.own_copy
                           : system.channels * std::max(system.channel_intra, system.channel_inter);
    wire += kOwnCopy * static_cast<double>(bytes.count) / 1e3 / system.ranks / bus;
  }
  if (is_one && is_simple_ring && system.intra == LinkKind::nvlink)
    wire *= kMeasuredWire[row_of(system.architecture)];
  return latency + wire + mixed_share(path, system) * std::sqrt(latency * wire);
}

NcclChannels search_channels(double gigabytes, std::int64_t architecture, bool within_node) {
  std::span<const double> speeds = kSpeeds;
  if (within_node && architecture >= 90) speeds = kSpeedsHopper;
  if (within_node && architecture >= 100) speeds = kSpeedsBlackwell;
  const double limit = architecture >= 100 ? kMaxChannels : kMaxChannelsBeforeBlackwell;
  NcclChannels best{1, gigabytes};
  double most = 0;
  for (const double speed : speeds) {
    const double count = std::min(std::floor(gigabytes / speed), limit);
    if (count * speed <= most) continue;
    most = count * speed;
    best = {static_cast<std::uint32_t>(count), speed};
  }
  while (best.count * 2 <= limit) best = {best.count * 2, best.each / 2};
  return best;
}

}  // namespace foretrace
