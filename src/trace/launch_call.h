#pragma once

// Recognizes calls of CUDA and HIP that launch a kernel. The names of the two differ only in the
// prefix, so the rest is compared. A graph launch does not count: a profiler that records whole
// graphs has no kernels for it.

#include <string_view>

namespace foretrace {

bool launches_kernel(std::string_view call);

}  // namespace foretrace
