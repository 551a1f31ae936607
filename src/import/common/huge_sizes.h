#pragma once

// Rejects sizes of memory that are too large to be true. Sums of accepted sizes cannot overflow.

#include <cstdint>

#include "foretrace/trace.h"

namespace foretrace {

/// Limits on the sizes in one trace: at most 64 TiB each, which is more than the memory of any
/// machine, and at most 64 PiB together, which an allocator that hands out 1 TB/s needs most of a
/// day to reach.
class PlausibleSizes {
 public:
  /// Adds a size (negative if memory is freed) to the sum if it is within the limits. Returns false
  /// otherwise.
  bool accept(std::int64_t bytes);

 private:
  std::int64_t sum_ = 0;
};

/// Handles records with impossible sizes and counts them in the notes: removes memory events, and
/// all segments with their blocks; copies, tensors and collectives stay, without their size. Takes
/// linear time.
void leave_out_huge_sizes(Trace& trace);

}  // namespace foretrace
