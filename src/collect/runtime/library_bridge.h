#pragma once

// The data that the two libraries inside a program share: the preloaded one, which intercepts
// PyTorch's allocator, and the recording one.

#include <atomic>
#include <cstdint>

#include "collect/runtime/file_identity.h"

namespace foretrace::collect {

/// A block that PyTorch's caching allocator allocates (bytes > 0) or frees.
struct BlockChange {
  std::uint64_t address;
  std::int64_t bytes;
  std::int64_t total_allocated;
  std::int64_t total_reserved;
  std::int16_t device;  ///< -1: host memory.
};

/// The connection between the two libraries. The preloaded one, which is in the program from the
/// start, exports it as `foretrace_library_bridge`; the recording one sets its function pointers
/// when it is loaded.
struct LibraryBridge {
  FileIdentity standard_error;  ///< Standard error when the program started.
  std::atomic<void (*)(const BlockChange*)> note_block{nullptr};
  std::atomic<int (*)()> holds_cupti{nullptr};
};
constexpr char kLibraryBridge[] = "foretrace_library_bridge";

}  // namespace foretrace::collect
