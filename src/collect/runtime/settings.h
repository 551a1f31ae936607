#pragma once

// The launcher configures the libraries inside the program with environment variables:
//
//     FORETRACE_SPOOL         folder for spools; without it, nothing is recorded
//     FORETRACE_RECORD        what to record: a list of kernels, api, sync, graphs, nvtx, memory,
//                             device_memory, overhead (kernels includes copies, fills and devices)
//     FORETRACE_START_AFTER   nanoseconds from the recorder's start to the start of recording
//     FORETRACE_DURATION      nanoseconds until recording stops
//     FORETRACE_STEPS         "3-6": record from the beginning of step 3 to the end of step 6,
//     found
//                             by NVTX ranges named "ProfilerStep#3" or "step 3"
//     FORETRACE_PROFILER_API  1: record only between cuProfilerStart and cuProfilerStop
//     FORETRACE_FLUSH_MS      milliseconds between fetching and writing records; 1000
//     FORETRACE_BUFFERS       most buffers given to CUPTI at a time; 64
//     FORETRACE_BUFFER_BYTES  size of each; 4194304
//     FORETRACE_EXIT_MS       milliseconds that the end of the program may wait for the disk;
//     10000.
//                             Records that are not written by then are counted as lost
//     FORETRACE_RAW           file that gets CUPTI's unchanged buffers (for tests)
//     FORETRACE_CUPTI         path of libcupti, if it is not found without
//     FORETRACE_DEVICES       folder of the GPUs' device files (for tests); /dev
//
// Invalid values fall back to the defaults, because nothing here may stop the program.

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
constexpr Record kDeviceMemory = 64;  ///< cudaMalloc and the like.
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
  const char* devices = "/dev";

  bool records(Record kind) const { return (record & kind) != 0; }
};

Settings read_settings();

}  // namespace foretrace::collect
