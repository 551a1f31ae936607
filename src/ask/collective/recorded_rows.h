#pragma once

#include <string>
#include <vector>

#include "network/nccl/measured.h"

namespace foretrace {

/// Whether a path is that of a trace or a folder of traces, by its ending.
bool is_recording(const std::string& path);

/// The collectives of the joined ranks of a job, each with the part of its time that was transfer
/// and not waiting for ranks that entered later: the median over its members. `per_node` is how
/// many ranks share a node. Throws TraceError if the ranks cannot be joined, Error if none has its
/// size.
std::vector<MeasuredCollective> recorded_rows(const std::string& path, std::uint32_t per_node);

}  // namespace foretrace
