#pragma once

// Shortest paths among some nodes of a cluster: the switches between hosts, or what is in one host.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "foretrace/cluster.h"
#include "foretrace/network.h"

namespace foretrace {

/// The cost of a path: its latency in nanoseconds, and so much for each hop that latency decides
/// only between paths of as many hops.
using PathCost = std::uint64_t;
constexpr PathCost kHop = 1'000'000'000;
/// Added for a PCIe link: among paths of as many hops NVLink's is taken, whatever the latency.
constexpr PathCost kPcie = 10'000'000;
/// Added for a CPU on the way: only where nothing else leads there, however long.
constexpr PathCost kThroughHost = 1'000 * kHop;
constexpr PathCost kNoPath = std::numeric_limits<PathCost>::max();

/// The cost of a link by itself.
PathCost link_cost(const ClusterLink& link);

/// The cost of passing through a node, besides; kNoPath where nothing may.
PathCost passing_cost(const Cluster& cluster, std::uint32_t node);

/// The shortest way on from a node.
struct Ahead {
  PathCost cost = kNoPath;
  std::uint32_t paths = 0;  ///< Equal ones; at most 2^32 - 1.
};

class Fabric {
 public:
  /// Takes the `links` that join two of `nodes`. Devices relay only where those of the cluster do.
  Fabric(const Cluster& cluster, std::vector<std::uint32_t> nodes, std::span<const LinkId> links);
  Fabric(Fabric&&) noexcept;
  ~Fabric();

  const std::vector<std::uint32_t>& nodes() const { return nodes_; }

  /// The way from each of its nodes, by its place, to the one at place `target`. With `from`, nodes
  /// that are further away than that one are left without a way, which is faster.
  std::vector<Ahead> towards(std::uint32_t target, std::optional<std::uint32_t> from = {}) const;

  /// Appends the links of one of the paths from the node at place `at`, by the result of
  /// towards(target). REQUIRES: choice < paths.
  void walk(std::span<const Ahead> ahead, std::uint32_t at, std::uint32_t target,
            std::uint64_t choice, std::vector<LinkId>& out) const;

 private:
  struct Step {
    std::uint32_t next;  ///< Place of the node it leads to.
    LinkId link;
    PathCost to = 0, through = 0;  ///< That node; kNoPath where nothing may pass through it.
    PathCost cost(std::uint32_t target) const { return next == target ? to : through; }
  };
  std::span<const Step> steps(std::uint32_t place) const {
    return std::span(steps_).subspan(first_step_[place],
                                     first_step_[place + 1] - first_step_[place]);
  }
  std::uint32_t count_paths(std::span<const Ahead> ahead, std::uint32_t place,
                            std::uint32_t target) const;

  std::vector<std::uint32_t> nodes_;
  std::vector<std::uint32_t> first_step_;  ///< Into steps_, by place; one more at the end.
  std::vector<Step> steps_;
  struct Backwards;  ///< A graph of Boost with all links turned around.
  std::unique_ptr<Backwards> backwards_;
};

}  // namespace foretrace
