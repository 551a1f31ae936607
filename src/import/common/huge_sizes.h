#pragma once

// Sizes of memory that are too large to be true. Any sum of accepted sizes fits its type with room
// to spare.

#include <cstdint>

#include "foretrace/trace.h"

namespace foretrace {

/// Limits on the sizes in one trace: at most 64 TiB each, which is more than the memory of any
/// machine, and at most 64 PiB together, which an allocator that hands out 1 TB/s needs most of a
/// day to reach.
class BelievedSizes {
 public:
  /// Whether a size (below 0 where it is freed) is accepted; it is then added to the others.
  bool take(std::int64_t bytes);

 private:
  std::int64_t sum_ = 0;
};

/// Leaves out records with sizes that are not accepted, and counts them in the notes: memory events
/// and segments with their blocks; copies, tensors and collectives stay without their size. Linear.
void leave_out_huge_sizes(Trace& trace);

}  // namespace foretrace
