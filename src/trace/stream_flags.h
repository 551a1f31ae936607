#pragma once

// How the streams of a trace were created, which decides whether CUDA orders their work with the
// work of the default stream. Few profilers record it. A trace keeps the flags as metadata, with
// CUPTI's numbers, so that every format with metadata preserves them:
//
//     "cuda_stream_flags": [[0,7,3],[0,13,1],[0,20,2]]      device, stream, flag

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

enum class StreamFlag : std::uint8_t {
  unknown,
  blocking,      ///< Ordered with the default stream; per-thread default streams as well.
  non_blocking,  ///< Created with cudaStreamNonBlocking, as PyTorch and NCCL do.
  null           ///< The legacy default stream of a context.
};

inline constexpr std::string_view kStreamFlagsKey = "cuda_stream_flags";

/// Converts CUPTI's number of a flag; returns unknown for any other number.
StreamFlag stream_flag_of(std::int64_t number);

/// The flag of each stream of the trace; unknown if it is not recorded.
std::vector<StreamFlag> stream_flags(const Trace& trace);

/// Stores the flags in the trace's metadata, unless all are unknown. REQUIRES: one flag for each
/// stream of the trace.
void keep_stream_flags(Trace& trace, const std::vector<StreamFlag>& flags);

}  // namespace foretrace
