#pragma once

#include <cstdint>
#include <string>

#include "foretrace/cluster.h"

namespace foretrace {

/// Why there is no route between two ranks: what the first reaches, and that no link leads on.
std::string no_route(const Cluster& cluster, std::uint32_t from, std::uint32_t to,
                     bool hosts_touch);

}  // namespace foretrace
