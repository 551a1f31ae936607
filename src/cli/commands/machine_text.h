#pragma once

#include <iosfwd>

#include "network/network.h"

namespace foretrace {

/// Describes a machine: its hosts and their devices, its links by kind, the routes between ranks,
/// and the source of the figures.
void write_machine(const Network& network, std::ostream& out);

}  // namespace foretrace
