#pragma once

// Recognizes calls of CUDA and HIP that launch a kernel or a graph. The names of the two differ
// only in the prefix, so the rest is compared.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

bool launches_kernel(std::string_view call);
bool launches_graph(std::string_view call);

/// Returns the indices of the host records that launch a kernel to run. Launches while their thread
/// captures a graph are left out: they only add a node to it.
std::vector<std::uint32_t> launches_to_run(const Trace& trace);
/// Likewise, of the calls whose name `counts`.
std::vector<std::uint32_t> calls_to_run(const Trace& trace,
                                        const std::function<bool(NameId)>& counts);

}  // namespace foretrace
