#pragma once

#include <string>

#include "foretrace/trace.h"

namespace foretrace {

/// The recorded name of a copy. If it does not contain source and destination, a name in the
/// spelling of PyTorch's profiler instead: "Memcpy HtoD (Pinned -> Device)".
std::string copy_name(const Trace& trace, const DeviceRecord& record);

}  // namespace foretrace
