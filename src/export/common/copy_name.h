#pragma once

#include <string>

#include "foretrace/trace.h"

namespace foretrace {

/// The name of a copy, or one in the profiler's spelling, "Memcpy HtoD (Pinned -> Device)", if its
/// own does not contain source and destination.
std::string copy_name(const Trace& trace, const DeviceRecord& record);

}  // namespace foretrace
