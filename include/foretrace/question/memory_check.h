#pragma once

// Does the replayed allocator do what the recorded one did? A trace that records every block
// together with the total allocated and reserved memory answers that: its requests are fed to a
// CachingAllocator, and the levels of the two are compared after each.
//
//     recorded  malloc 6MiB -> 22 MiB allocated, 32 MiB reserved
//     replayed  malloc 6MiB -> 22 MiB allocated, 32 MiB reserved       no error
//
// cold: the allocator starts empty except for one block as large as the memory in use. The cache of
//     the real one is unknown, and so is the free space between its blocks.
// warm: it starts with the segments and blocks that the recording shows: those of a snapshot, or
//     stretches between the addresses in the trace.

#include <cstdint>
#include <vector>

#include "foretrace/trace.h"
#include "foretrace/units.h"

namespace foretrace {

/// How far replayed levels are off the recorded ones, over all events that record them.
struct LevelError {
  Bytes recorded_peak{};
  Bytes replayed_peak{};
  Bytes most{};     ///< The greatest error at any event, without its sign.
  double mean = 0;  ///< Mean size of the errors, in bytes.
  double peak = 0;  ///< Error of the replayed peak: (replayed - recorded) / recorded.
  std::int64_t compared = 0;
};

struct MemoryReplay {
  LevelError allocated, reserved;
  /// Blocks at the same address as in the recording; counts only blocks in segments that both have
  /// at the same place.
  std::int64_t same_address = 0;
  std::int64_t compared_addresses = 0;
};

struct MemoryCheck {
  std::int32_t device = 0;
  std::int64_t events = 0;  ///< Blocks made or freed.
  /// Frees of blocks that nothing in the trace makes; they were there before.
  std::int64_t freed_unmade = 0;
  Bytes initial_allocated{}, initial_reserved{};  ///< Levels before the first event.
  /// Recorded sizes are those of blocks, including rounding, not requested sizes.
  bool sizes_are_rounded = false;
  MemoryReplay cold, warm;
};

/// Returns one check, in order of device, for each device whose blocks are recorded together with
/// the levels after them.
std::vector<MemoryCheck> check_memory(const Trace& trace);

}  // namespace foretrace
