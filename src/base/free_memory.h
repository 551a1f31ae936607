#pragma once

#include <optional>

#include "foretrace/units.h"

namespace foretrace {

/// How much more memory this process can take before the system refuses it or kills the process:
/// the least of what the machine has free, what its control group leaves, and what the limit on
/// its address space leaves. Nothing where the system does not say (only Linux does). A snapshot:
/// other processes take memory, too.
std::optional<Bytes> free_memory();

}  // namespace foretrace
