#pragma once

#include "foretrace/trace.h"

namespace foretrace {

/// Gives kernels with mangled C++ names their readable ones, as PyTorch's profiler writes them.
/// CUPTI and ROCm record mangled names; rules that look for "at::native::" and comparisons with
/// other recordings of the job need one form.
void demangle_kernels(Trace& trace);

}  // namespace foretrace
