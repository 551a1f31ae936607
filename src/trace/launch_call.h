#pragma once

// Recognizes calls of CUDA and HIP that launch a kernel. Their names differ only in the prefix, so
// the rest is compared. A graph launch is not among them: a recording of whole graphs has no
// kernels for it.

#include <string_view>

namespace foretrace {

bool launches_kernel(std::string_view call);

}  // namespace foretrace
