#pragma once

// Reconstructs what an allocator held when a recording began, as far as the recording shows it. A
// snapshot has the state at the end, from which all events are taken back. A profiler has blocks
// only:
//
//     touched    |bbbb|      |bb|bbbb|    stretches of addresses that blocks of the trace lie in
//     cut                       ^         where a block was given out though the bytes in front
//                                         were free: free blocks of one segment join, so this is
//                                         where a segment begins
//
// and small blocks never share a stretch of 2 MiB with large ones, as their segments are so large.
// The rest of what was reserved is one segment that nobody can use: what is never touched does no
// harm by being elsewhere.

#include <cstdint>
#include <vector>

#include "foretrace/allocator.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Holds the records of one device, in order of time.
struct RecordedMemory {
  std::int32_t device = 0;
  std::vector<const MemoryRecord*> records;
  bool is_snapshot = false;
  bool requests_free = false;  ///< Nothing tells when frees are completed; requests have to do.
  AllocatorSettings settings;
  std::int64_t allocated = 0, reserved = 0;  ///< In front of the first record.

  bool makes(const MemoryRecord& record) const {
    return record.action == MemoryAction::block && record.bytes > 0;
  }
  bool frees(const MemoryRecord& record) const {
    return (record.action == MemoryAction::block && record.bytes < 0) ||
           (requests_free && record.action == MemoryAction::free_requested);
  }
};

/// A block that was there before the first record, and is freed or held.
struct EarlyBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< As recorded.
  std::uint32_t stream = kNone;
};

/// Returns blocks that a record frees but none makes, in the order in which they are freed.
std::vector<EarlyBlock> blocks_from_before(const RecordedMemory& memory);

/// Handles of blocks are their places in blocks_from_before(), or else above any of these.
std::vector<AllocatorSegment> layout_before(const Trace& trace, const RecordedMemory& memory);

/// A stream of its own, that no record asks on.
constexpr std::int64_t kNobodysStream = -7;
constexpr std::int64_t kFirstOtherHandle = std::int64_t{1} << 40;

inline std::int64_t stream_of(std::uint32_t stream) {
  return stream == kNone ? -1 : static_cast<std::int64_t>(stream);
}

}  // namespace foretrace
