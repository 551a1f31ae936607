#pragma once

// The launcher configures the libraries inside the program by environment variables:
//
//     FORETRACE_SPOOL         folder for spools; nothing is recorded without
//     FORETRACE_RECORD        what: a list of kernels, api, sync, graphs, nvtx, memory,
//     device_memory,
//                             overhead (kernels includes copies, fills and devices)
//     FORETRACE_START_AFTER   nanoseconds from the start of CUDA to the start of recording
//     FORETRACE_DURATION      nanoseconds until it stops
//     FORETRACE_STEPS         "3-6": from the beginning of step 3 to the end of step 6, as NVTX
//     ranges
//                             named "ProfilerStep#3" or "step 3" tell
//     FORETRACE_PROFILER_API  1: between cuProfilerStart and cuProfilerStop only
//     FORETRACE_FLUSH_MS      how often records are fetched and written; 1000
//     FORETRACE_BUFFERS       most buffers given to CUPTI at a time; 64
//     FORETRACE_BUFFER_BYTES  size of each; 4194304
//     FORETRACE_EXIT_MS       for how long the end of the program may wait until the disk has taken
//                             what is left; 10000. The rest is counted as lost
//     FORETRACE_RAW           file that receives CUPTI's buffers as they come (for tests)
//     FORETRACE_CUPTI         path of libcupti where it is not found by itself
//
// Unusual values fall back to the defaults: nothing here may stop the program.

#include <cstddef>
#include <cstdint>

namespace foretrace::collect {

/// Bits of Settings::record.
using Record = std::uint32_t;
constexpr Record kKernels = 1;
constexpr Record kApi = 2;
constexpr Record kSync = 4;
constexpr Record kGraphs = 8;
constexpr Record kNvtx = 16;
constexpr Record kMemory = 32;        ///< Blocks of PyTorch's allocator.
constexpr Record kDeviceMemory = 64;  ///< cudaMalloc and its like.
constexpr Record kOverhead = 128;
constexpr Record kEverything = 255;

struct Settings {
  const char* spool_folder = nullptr;  ///< nullptr: record nothing.
  Record record = kEverything;
  std::uint64_t start_after_ns = 0;
  std::uint64_t duration_ns = 0;  ///< 0: to the end.
  bool by_steps = false;
  std::uint64_t first_step = 0;
  std::uint64_t last_step = 0;
  bool by_profiler_api = false;
  std::uint32_t flush_ms = 1000;
  std::uint32_t exit_ms = 10'000;
  std::uint32_t buffers = 64;
  std::size_t buffer_bytes = std::size_t{4} << 20;
  const char* raw_file = nullptr;
  const char* cupti = nullptr;

  bool records(Record what) const { return (record & what) != 0; }
};

Settings read_settings();

}  // namespace foretrace::collect
