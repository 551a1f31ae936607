#pragma once

// Where the two libraries that go into a program meet: the preloaded one, which sees the allocator
// of PyTorch, and the one that records.

#include <atomic>
#include <cstdint>

#include "collect/own/file_identity.h"

namespace foretrace::collect {

/// A block given out (bytes > 0) or taken back by PyTorch's caching allocator.
struct BlockChange {
  std::uint64_t address;
  std::int64_t bytes;
  std::int64_t total_allocated;
  std::int64_t total_reserved;
  std::int16_t device;  ///< -1: host memory.
};

/// Where the two libraries meet. The preloaded one, which is in the program from the start, exports
/// it as `foretrace_meeting`; the recording one enters its functions when it is loaded.
struct Meeting {
  FileIdentity standard_error;  ///< When the program started.
  std::atomic<void (*)(const BlockChange*)> note_block{nullptr};
  std::atomic<int (*)()> holds_cupti{nullptr};
};
constexpr char kMeeting[] = "foretrace_meeting";

}  // namespace foretrace::collect
