#pragma once

// The categories that PyTorch's profiler gives to records. Kineto traces use them, and so do our
// exports to other formats in which categories can be chosen freely.

#include <string>
#include <string_view>

#include "foretrace/trace.h"

namespace foretrace {

std::string_view category_of(HostKind kind);
std::string_view category_of(DeviceKind kind);

/// The recorded name of a copy. If it does not contain source and destination, a name in the
/// spelling of PyTorch's profiler instead: "Memcpy HtoD (Pinned -> Device)".
std::string copy_name(const Trace& trace, const DeviceRecord& record);

}  // namespace foretrace
