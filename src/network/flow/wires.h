#pragma once

// Collectives on the links of a machine: in closed form, and as flows that share links.

#include <functional>
#include <vector>

#include "foretrace/collective.h"
#include "foretrace/network.h"

namespace foretrace {

/// Links, and the way from one endpoint to another.
struct Wires {
  std::vector<Bandwidth> capacities;
  /// Overwrites `route` with the links, and returns their latency. Throws Error if there is none.
  std::function<Nanoseconds(std::uint32_t from, std::uint32_t to,
                            std::vector<std::uint32_t>& route)>
      route;
};

/// A link from and a link to each endpoint; `latency` between any two. Endpoints from
/// `switches_from` on, which are switches, limit nothing.
Wires uniform_wires(std::uint32_t endpoints, const LinkCost& cost,
                    std::uint32_t switches_from = ~std::uint32_t{0});
/// REQUIRES: the network outlives the wires. ECMP by `seed`.
Wires wires_of(const Network& network, std::uint64_t seed);

/// Round after round, each as long as its longest latency and its busiest link take. Of more than a
/// few rounds evenly many are worked out, each for those around it.
Nanoseconds closed_on(const Wires& wires, const Algorithm& algorithm, const Call& call,
                      LinkCosts costs);

/// Every message is a flow, which begins when the sender has what it needs and its round before has
/// arrived. State: a few counts a rank, and the flows under way. `costs` gives gamma, and decides
/// into how many pieces a pipeline cuts the data.
Expansion flow_on(const Wires& wires, const Algorithm& algorithm, const Call& call,
                  LinkCosts costs);

}  // namespace foretrace
