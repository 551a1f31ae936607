#pragma once

// The functions that the recording library exports, for those who load it.

#include <cstdint>

#include "collect/nvtx_abi.h"

namespace foretrace::collect {

/// A block given out (bytes > 0) or taken back by PyTorch's caching allocator.
struct BlockChange {
  std::uint64_t address;
  std::int64_t bytes;
  std::int64_t total_allocated;
  std::int64_t total_reserved;
  std::int16_t device;  ///< -1: host memory.
};

}  // namespace foretrace::collect

#pragma GCC visibility push(default)
extern "C" {
int InitializeInjection();
int InitializeInjectionNvtx2(foretrace::nvtx::GetExportTable get_table);
int InitializeInjectionNvtx(foretrace::nvtx::GetExportTable get_table);
int InitializeInjectionNvtxExtension(foretrace::nvtx::ModuleInfo* module);
void foretrace_note_block(const foretrace::collect::BlockChange* change);
int foretrace_holds_cupti();
}
#pragma GCC visibility pop
