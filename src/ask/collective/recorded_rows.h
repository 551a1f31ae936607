#pragma once

#include <string>
#include <vector>

#include "network/nccl/measured.h"

namespace foretrace {

/// Whether a path is a trace or a folder of traces, judged by its ending.
bool is_recording(const std::string& path);

/// Measures the collectives of a job with joined ranks: the part of their time that was transfer,
/// not waiting for ranks that entered later, as the median over the members. `per_node` is the
/// number of ranks on a node. Throws TraceError if the ranks cannot be joined, and Error if no
/// collective has its size.
std::vector<MeasuredCollective> recorded_rows(const std::string& path, std::uint32_t per_node);

}  // namespace foretrace
