#pragma once

// Receives NVTX calls: own timestamps and thread numbers, with any version of CUPTI or none.

#include "collect/nvtx/nvtx_abi.h"

namespace foretrace::collect {

/// Sets the functions of one library that contains NVTX. 1 if calls are wanted.
int attach_nvtx(nvtx::GetExportTable get_table);

/// The same for its payload extension.
int attach_nvtx_extension(nvtx::ModuleInfo* module);

}  // namespace foretrace::collect
