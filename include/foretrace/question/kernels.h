#pragma once

#include <string>

#include "foretrace/answer/kernels.h"
#include "foretrace/import.h"

namespace foretrace {

/// Measures the kernels of the rank with the longest step. `machine` names the device whose peaks
/// are used; empty: the recorded one. Throws TraceError if there are no kernels.
KernelReport measure_kernels(const std::string& path, const std::string& machine,
                             const ImportOptions& reading = {});

}  // namespace foretrace
