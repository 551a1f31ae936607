#pragma once

// Reconstructs what an allocator held when a recording began, as far as the recording shows it. A
// snapshot has the state at the end, from which all events are undone. A profiler records blocks
// only:
//
//     touched    |bbbb|      |bb|bbbb|    ranges of addresses in which blocks of the trace lie
//     cut                       ^         a block was allocated here although the bytes in front
//                                         were free: free blocks of one segment are joined, so a
//                                         segment begins here
//
// Small blocks never share a range of 2 MiB with large ones, because their segments have that size.
// The rest of the reserved memory is one segment that no request can use; its place does not
// matter, because it is never touched.

#include <cstdint>
#include <vector>

#include "foretrace/allocator.h"
#include "foretrace/trace.h"

namespace foretrace {

/// The records of one device, in order of time.
struct RecordedMemory {
  std::int32_t device = 0;
  std::vector<const MemoryRecord*> records;
  bool is_snapshot = false;
  /// The trace does not record when frees complete, so their requests count instead.
  bool requests_free = false;
  AllocatorSettings settings;
  std::int64_t allocated = 0, reserved = 0;  ///< Levels before the first record.

  bool makes(const MemoryRecord& record) const {
    return record.action == MemoryAction::block && record.bytes > 0;
  }
  bool frees(const MemoryRecord& record) const {
    return (record.action == MemoryAction::block && record.bytes < 0) ||
           (requests_free && record.action == MemoryAction::free_requested);
  }
};

/// A block that was allocated before the first record.
struct EarlyBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< As recorded.
  std::uint32_t stream = kNone;
};

/// Returns blocks that a record frees although none makes them, in the order in which they are
/// freed.
std::vector<EarlyBlock> blocks_from_before(const RecordedMemory& memory);

/// The segments before the first record. The handle of a block is its index in
/// blocks_from_before(), or at least kFirstOtherHandle if it is not in that list.
std::vector<AllocatorSegment> layout_before(const Trace& trace, const RecordedMemory& memory);

/// A stream on which no recorded request is made.
constexpr std::int64_t kUnusedStream = -7;
constexpr std::int64_t kFirstOtherHandle = std::int64_t{1} << 40;

inline std::int64_t stream_of(std::uint32_t stream) {
  return stream == kNone ? -1 : static_cast<std::int64_t>(stream);
}

}  // namespace foretrace
