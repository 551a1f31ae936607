#pragma once

// The categories that PyTorch's profiler gives to records. Kineto traces use them, and so do our
// exports to other formats in which categories can be chosen freely.

#include <string_view>

#include "foretrace/trace.h"

namespace foretrace {

std::string_view category_of(HostKind kind);
std::string_view category_of(DeviceKind kind);

}  // namespace foretrace
