#pragma once

// The input of a topology: the ports to connect, which are the NICs of all hosts or the devices of
// hosts without NICs, and the cluster that receives the switches and cables.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/cluster.h"

namespace foretrace {

/// Larger clusters would not fit in the memory of an ordinary host.
inline constexpr std::size_t kMaxNodes = 4'000'000;

/// A kind of cable; each direction has the full bandwidth.
struct Cable {
  Bandwidth bandwidth{50e9};
  Nanoseconds latency{1000};
  LinkKind kind = LinkKind::network;
};

class Wiring {
 public:
  /// `ports` are in the order of hosts, `per_host` ports of each. Names of switches begin with
  /// `prefix`.
  Wiring(Cluster& cluster, std::vector<std::uint32_t> ports, std::size_t per_host,
         std::string prefix = {})
      : cluster_(cluster), ports_(std::move(ports)), per_host_(per_host), prefix_(prefix) {}

  const std::vector<std::uint32_t>& ports() const { return ports_; }
  std::size_t per_host() const { return per_host_; }

  /// Returns a wiring for some of the ports.
  Wiring part(std::vector<std::uint32_t> ports, const std::string& prefix) const {
    return {cluster_, std::move(ports), 1, prefix_ + prefix};
  }

  /// Adds a switch outside all hosts, or in the host if all ports are devices of one host.
  std::uint32_t add_switch(std::string_view name, std::size_t number);
  void connect(std::uint32_t a, std::uint32_t b, const Cable& cable);

 private:
  Cluster& cluster_;
  std::vector<std::uint32_t> ports_;
  std::size_t per_host_;
  std::string prefix_;
};

/// Appends a link for each direction, or one if not `both_ways`. Throws Error, naming both ends, if
/// the bandwidth is 0.
void add_link(Cluster& cluster, ClusterLink link, bool both_ways);

}  // namespace foretrace
