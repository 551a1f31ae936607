#pragma once

// PyTorch's allocator as far as a profiler can see it: libc10.so has the function that is told of
// every block, and libc10_cuda.so calls it through the procedure linkage table.

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
/// How often PyTorch's own function was reached.
PLAYED_EXPORT std::uint64_t played_reports();
/// libc10_cuda.so exports this: a block comes, or goes if `bytes` is negative.
PLAYED_EXPORT void played_block(void* pointer, std::int64_t bytes, std::size_t total_allocated,
                                std::size_t total_reserved, std::int8_t device);
}
