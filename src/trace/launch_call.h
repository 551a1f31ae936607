#pragma once

// Which calls of CUDA and HIP give a kernel to a device. Their names differ only in the prefix, so
// the rest is looked for. A graph launch is not among them: a recording of whole graphs has no
// kernels for it.

#include <string_view>

namespace foretrace {

bool launches_kernel(std::string_view call);

}  // namespace foretrace
