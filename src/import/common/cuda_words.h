#pragma once

// CUDA's numbers and names as CUPTI reports them, both to our collector and to Nsight Systems,
// translated to the names of PyTorch's profiler, so that only the importers know other spellings.

#include <cstdint>
#include <string_view>

#include "foretrace/trace.h"

namespace foretrace {

/// CUpti_ActivityMemcpyKind, ENUM_CUDA_MEMCPY_OPER.
struct CopyKind {
  std::string_view text;  ///< "HtoD"; empty if unknown.
  CopyDirection direction;
};
const CopyKind& copy_kind(std::int64_t number);

/// CUpti_ActivityMemoryKind. ENUM_CUDA_MEM_KIND is one less.
inline constexpr std::int64_t kPinnedMemory = 2;
inline constexpr std::int64_t kDeviceMemory = 3;
inline constexpr std::int64_t kDeviceStaticMemory = 6;
std::string_view memory_kind(std::int64_t number);

/// "cudaLaunchKernel" for "cudaLaunchKernel_ptsz_v7000", which adds a mark of programs with one
/// default stream per thread and the version of CUDA that introduced it. A short number is part of
/// the name: "cuCtxCreate_v2".
std::string_view without_version(std::string_view call);

/// Blocks of a grid or threads of a block, clamped to the type.
std::uint32_t volume(std::int64_t x, std::int64_t y, std::int64_t z);

}  // namespace foretrace
