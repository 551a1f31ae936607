#pragma once

#include <optional>

#include "foretrace/units.h"

namespace foretrace {

/// How much more memory this process can take before the system refuses it or kills the process:
/// the least of the machine's free memory, the rest in its control group, and the rest of the limit
/// on its address space. Returns nullopt if the system does not report it (only Linux does). This
/// is a snapshot: other processes take memory, too.
std::optional<Bytes> free_memory();

}  // namespace foretrace
