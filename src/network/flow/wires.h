#pragma once

// Collectives on the links of a machine: in closed form, and as flows that share links.

#include <functional>
#include <vector>

#include "network/collective.h"
#include "network/network.h"

namespace foretrace {

/// Links, and the routes between endpoints.
struct Wires {
  std::vector<Bandwidth> capacities;
  /// Overwrites `route` with the links and returns their latency. Throws Error if there is no
  /// route.
  std::function<Nanoseconds(std::uint32_t from, std::uint32_t to,
                            std::vector<std::uint32_t>& route)>
      route;
};

/// Returns a network with one link from and one link to each endpoint, and `latency` between any
/// two. Endpoints from `switches_from` on are switches, which limit nothing.
Wires uniform_wires(std::uint32_t endpoints, const LinkCost& cost,
                    std::uint32_t switches_from = ~std::uint32_t{0});
/// REQUIRES: the network outlives the wires. `seed` selects the paths of ECMP.
Wires wires_of(const Network& network, std::uint64_t seed);

/// Returns the closed-form time: each round takes as long as its longest latency plus its busiest
/// link. If there are many rounds, evenly spaced ones are computed, each standing for those around
/// it.
Nanoseconds closed_form_time(const Wires& wires, const Algorithm& algorithm, const Call& call,
                             LinkCosts costs);

/// Simulates every message as a flow, which begins when the sender has the data it needs and its
/// previous round has arrived. The state is a few counts per rank and the active flows. `costs`
/// gives gamma, and decides into how many pieces a pipeline cuts the data.
Expansion simulate_flows(const Wires& wires, const Algorithm& algorithm, const Call& call,
                         LinkCosts costs);

}  // namespace foretrace
