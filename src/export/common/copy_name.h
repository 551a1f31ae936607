#pragma once

#include <string>

#include "foretrace/trace.h"

namespace foretrace {

/// "HtoD" and so on, as CUPTI abbreviates the ends of a copy; empty for none.
std::string_view copy_sign(CopyDirection direction);

/// The name of a copy, or one in the profiler's spelling, "Memcpy HtoD (Pinned -> Device)", where
/// its own does not tell where from and where to.
std::string copy_name(const Trace& trace, const DeviceRecord& record);

}  // namespace foretrace
