#pragma once

// CUDA's numbers and names as CUPTI tells them, both to our collector and to Nsight Systems, in the
// words of PyTorch's profiler, so that nothing behind the importers has to know another spelling.

#include <cstdint>
#include <string>
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

/// "cudaLaunchKernel" of "cudaLaunchKernel_ptsz_v7000": the function, a mark of programs whose
/// default stream is one per thread, the version of CUDA that introduced it. A short number is part
/// of the name: "cuCtxCreate_v2".
std::string_view without_version(std::string_view call);

/// Blocks of a grid or threads of a block, as many as fit.
std::uint32_t volume(std::int64_t x, std::int64_t y, std::int64_t z);

}  // namespace foretrace
