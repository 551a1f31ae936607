#pragma once

// Receives NVTX calls directly, with timestamps and thread numbers of our own. This works with any
// version of CUPTI, or without it.

#include "collect/nvtx/nvtx_abi.h"

namespace foretrace::collect {

/// Sets the function pointers in one library that contains NVTX. Returns 1 if ranges are recorded,
/// otherwise 0.
int attach_nvtx(nvtx::GetExportTable get_table);

/// Does the same for the payload extension of NVTX.
int attach_nvtx_extension(nvtx::ModuleInfo* module);

}  // namespace foretrace::collect
