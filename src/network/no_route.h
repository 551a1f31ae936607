#pragma once

#include <cstdint>
#include <string>

#include "foretrace/cluster.h"

namespace foretrace {

/// Explains why there is no route between two ranks: lists the nodes that the first reaches and the
/// nodes that no link leads to.
std::string describe_no_route(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                              bool hosts_are_linked);

}  // namespace foretrace
