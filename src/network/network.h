#pragma once

// The machine as traffic sees it: directed links, and the routes over them. A route has the fewest
// hops, and of those the least latency. A hop over a host's CPU counts as a thousand, because
// everything else is faster (NCCL's order of paths: NVLink, PCIe switch, CPU). Where hosts meet at
// switches, a route passes through no third host. Routes are computed when asked for. Only the
// distances of switches from the switches at which traffic arrives are cached, and these only up to
// a bound, so that 16,384 devices fit.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "foretrace/cluster.h"

namespace foretrace {

using LinkId = std::uint32_t;

class Network {
 public:
  /// Takes about 10 us per device, once. Throws Error on a cluster without devices.
  explicit Network(Cluster cluster);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const Cluster& cluster() const;
  std::uint32_t ranks() const;
  std::span<const ClusterLink> links() const;  ///< LinkId is an index into them.
  std::int32_t host_of(std::uint32_t rank) const;

  /// How many routes of equal cost lead from one rank to another; at most 2^32 - 1. 1 from a rank
  /// to itself, with no links. Throws Error as route() does.
  std::uint32_t paths(std::uint32_t from, std::uint32_t to) const;

  /// The links from one rank to another, in order, by one of the equal routes: number
  /// hash(from, to, seed) mod paths. `out` is overwritten. Throws Error if there is no route, with
  /// what each end can reach. Not thread-safe: each thread needs a Network of its own.
  void route(std::uint32_t from, std::uint32_t to, std::uint64_t seed,
             std::vector<LinkId>& out) const;

  /// Route number `path` of paths(), for traffic that is sprayed over all of them.
  void path(std::uint32_t from, std::uint32_t to, std::uint32_t path,
            std::vector<LinkId>& out) const;

  /// The most that the first half of the ranks can send to the second at once: the least cut.
  /// Takes seconds for thousands of ranks. 0 with fewer than two ranks.
  Bandwidth bisection() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
