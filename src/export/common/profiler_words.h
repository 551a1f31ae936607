#pragma once

// Categories of records as PyTorch's profiler names them, which the Kineto trace has and the other
// formats with free categories take over.

#include <string_view>

#include "foretrace/trace.h"

namespace foretrace {

std::string_view category_of(HostKind kind);
std::string_view category_of(DeviceKind kind);

}  // namespace foretrace
