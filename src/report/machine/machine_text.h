#pragma once

#include <iosfwd>

#include "foretrace/network.h"

namespace foretrace {

/// Describes a machine: hosts and what is in them, its links by kind, how ranks reach each other,
/// and where the figures are from.
void write_machine(const Network& network, std::ostream& out);

}  // namespace foretrace
