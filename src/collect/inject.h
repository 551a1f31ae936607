#pragma once

// The functions that the recording library exports. The CUDA driver and NVTX call them after they
// load the library.

#include "collect/nvtx/nvtx_abi.h"

#pragma GCC visibility push(default)
extern "C" {
int InitializeInjection();
int InitializeInjectionNvtx2(foretrace::nvtx::GetExportTable get_table);
int InitializeInjectionNvtx(foretrace::nvtx::GetExportTable get_table);
int InitializeInjectionNvtxExtension(foretrace::nvtx::ModuleInfo* module);
}
#pragma GCC visibility pop
