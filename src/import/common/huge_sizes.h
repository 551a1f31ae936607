#pragma once

// Sizes of memory that are too large to be true. A sum of sizes then always fits its type with room
// to spare, whoever adds them up.

#include <cstdint>

#include "foretrace/trace.h"

namespace foretrace {

/// The sizes of one trace that are believed: at most 64 TiB each, which is more than the memory of
/// any machine, and at most 64 PiB together, which an allocator that hands out 1 TB/s reaches in
/// most of a day.
class BelievedSizes {
 public:
  /// Whether a size (below 0 where it is freed) is believed; it is then added to the others.
  bool take(std::int64_t bytes);

 private:
  std::int64_t sum_ = 0;
};

/// Leaves out, and counts in the notes, what has sizes that are not believed: memory events,
/// segments with their blocks; copies, tensors and collectives stay without their size. Linear.
void leave_out_huge_sizes(Trace& trace);

}  // namespace foretrace
