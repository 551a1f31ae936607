#pragma once

// How the streams of a trace were created, which decides whether CUDA orders their work with that
// of the default stream. Few profilers record it. A trace keeps it as metadata, so that every
// format that keeps metadata keeps it, with CUPTI's numbers for the flags:
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
  non_blocking,  ///< Created with cudaStreamNonBlocking, as those of PyTorch and NCCL are.
  null           ///< The legacy default stream of a context.
};

inline constexpr std::string_view kStreamFlagsKey = "cuda_stream_flags";

/// The flag that CUPTI's number stands for; unknown for any other number.
StreamFlag stream_flag_of(std::int64_t number);

/// The flags of each stream of the trace; unknown where they are not recorded.
std::vector<StreamFlag> stream_flags(const Trace& trace);

/// REQUIRES: one flag for each stream of the trace. Where none is known, nothing is written.
void keep_stream_flags(Trace& trace, const std::vector<StreamFlag>& flags);

}  // namespace foretrace
