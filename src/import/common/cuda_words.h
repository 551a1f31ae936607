#pragma once

// CUDA's numbers and names as CUPTI reports them, both to our collector and to Nsight Systems,
// translated to the names of PyTorch's profiler, so that only the importers know other spellings.

#include <cstdint>
#include <string_view>

#include "foretrace/trace.h"

namespace foretrace {

/// A kind of copy, by the numbers of CUpti_ActivityMemcpyKind and ENUM_CUDA_MEMCPY_OPER.
struct CopyKind {
  std::string_view text;  ///< "HtoD"; empty if unknown.
  CopyDirection direction;
};
const CopyKind& copy_kind(std::int64_t number);

/// The direction of a copy, from a name such as "Memcpy HtoD (Pageable -> Device)" or
/// "CopyHostToDevice".
CopyDirection copy_direction(std::string_view name);

/// Numbers of CUpti_ActivityMemoryKind. Those of ENUM_CUDA_MEM_KIND are one less.
inline constexpr std::int64_t kPinnedMemory = 2;
inline constexpr std::int64_t kDeviceMemory = 3;
inline constexpr std::int64_t kDeviceStaticMemory = 6;
std::string_view memory_kind(std::int64_t number);

/// The name of a call without suffixes: "cudaLaunchKernel" for "cudaLaunchKernel_ptsz_v7000". The
/// first suffix marks programs with one default stream per thread, the second the version of CUDA
/// that introduced the call. A short number is part of the name: "cuCtxCreate_v2".
std::string_view without_version(std::string_view call);

/// Number of blocks of a grid or threads of a block, clamped to the range of the type.
std::uint32_t volume(std::int64_t x, std::int64_t y, std::int64_t z);

}  // namespace foretrace
