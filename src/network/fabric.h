#pragma once

// Shortest paths among a set of nodes of a cluster: the switches between hosts, or the parts of one
// host.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "foretrace/cluster.h"
#include "network/network.h"

namespace foretrace {

/// The cost of a path: its latency in nanoseconds plus kHop for each hop. kHop is so large that
/// latency decides only between paths with the same number of hops.
using PathCost = std::uint64_t;
constexpr PathCost kHop = 1'000'000'000;
/// Added for a PCIe link, so that NVLink wins among paths with the same number of hops, whatever
/// the latency.
constexpr PathCost kPcie = 10'000'000;
/// Added for passing through a CPU, so that such a path is taken only if there is no other.
constexpr PathCost kThroughHost = 1'000 * kHop;
constexpr PathCost kNoPath = std::numeric_limits<PathCost>::max();

/// The cost of a link by itself.
PathCost link_cost(const ClusterLink& link);

/// The additional cost of passing through a node; kNoPath if traffic must not pass through it.
PathCost passing_cost(const Cluster& cluster, std::uint32_t node);

/// The shortest paths from a node to the target.
struct ShortestPaths {
  PathCost cost = kNoPath;
  std::uint32_t paths = 0;  ///< Number of equally short paths; saturates at 2^32 - 1.
};

class Fabric {
 public:
  /// Uses those of `links` whose two ends are both in `nodes`. Devices relay traffic only if the
  /// cluster's devices do.
  Fabric(const Cluster& cluster, std::vector<std::uint32_t> nodes, std::span<const LinkId> links);
  Fabric(Fabric&&) noexcept;
  ~Fabric();

  const std::vector<std::uint32_t>& nodes() const { return nodes_; }

  /// Returns the shortest paths from each node, by place, to the node at place `target`. If `from`
  /// is given, nodes farther away than `from` may be left without a path, which is faster.
  std::vector<ShortestPaths> towards(std::uint32_t target,
                                     std::optional<std::uint32_t> from = {}) const;

  /// Appends the links of one of the shortest paths from the node at place `at`. `to_target` is the
  /// result of towards(target). REQUIRES: choice < to_target[at].paths.
  void walk(std::span<const ShortestPaths> to_target, std::uint32_t at, std::uint32_t target,
            std::uint64_t choice, std::vector<LinkId>& out) const;

 private:
  struct Step {
    std::uint32_t next;  ///< Place of the node at the other end.
    LinkId link;
    PathCost to = 0, through = 0;  ///< Cost with that node as the target, and with it on the way;
                                   ///< kNoPath if nothing may pass through it.
    PathCost cost(std::uint32_t target) const { return next == target ? to : through; }
  };
  std::span<const Step> steps(std::uint32_t place) const {
    return std::span(steps_).subspan(first_step_[place],
                                     first_step_[place + 1] - first_step_[place]);
  }
  std::uint32_t count_paths(std::span<const ShortestPaths> to_target, std::uint32_t place,
                            std::uint32_t target) const;

  std::vector<std::uint32_t> nodes_;
  /// Index into steps_, by place; one more entry at the end.
  std::vector<std::uint32_t> first_step_;
  std::vector<Step> steps_;
  struct ReverseGraph;  ///< A Boost graph with all links reversed.
  std::unique_ptr<ReverseGraph> reverse_graph_;
};

}  // namespace foretrace
