#pragma once

// PyTorch's allocator as a profiler sees it: libc10.so has the function that is called for every
// block, and libc10_cuda.so calls it through the procedure linkage table.

#include <cstddef>
#include <cstdint>

#define PLAYED_EXPORT __attribute__((visibility("default")))

namespace c10 {

struct PLAYED_EXPORT Device final {
  std::int8_t type;  ///< 1 is CUDA.
  std::int8_t index;
};

/// Its mangled name is the same as PyTorch's.
PLAYED_EXPORT void reportMemoryUsageToProfiler(void* pointer, std::int64_t bytes,
                                               std::size_t total_allocated,
                                               std::size_t total_reserved, Device device);

}  // namespace c10

extern "C" {
/// The number of calls that reached PyTorch's own function.
PLAYED_EXPORT std::uint64_t played_reports();
/// Exported by libc10_cuda.so: reports a block that is allocated, or freed if `bytes` is negative.
PLAYED_EXPORT void played_block(void* pointer, std::int64_t bytes, std::size_t total_allocated,
                                std::size_t total_reserved, std::int8_t device);
}
