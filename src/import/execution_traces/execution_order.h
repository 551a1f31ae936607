#pragma once

// Derives the order of ops in a trace without times.

#include <cstdint>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// at::RecordScope::USER_SCOPE: a range that the program named, not an op.
inline constexpr std::int64_t kUserScope = 7;

/// Ids of an op and of the op that called it. Ids increase in the order in which ops begin, over
/// all threads. The parent of an outermost op is an id that no op has.
struct NodeIds {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
};

/// Sorts the host records into the order in which they began and updates the tensors that refer to
/// them. Positions replace the times, so that the calls of an op lie inside it:
///
///     zeros       |0.......................5|
///       empty       |1...2|
///       zero_                 |3...4|
///
/// REQUIRES: `nodes` has one entry for each host record. Takes O(n log n) time.
void set_positions(Trace& trace, const std::vector<NodeIds>& nodes);

}  // namespace foretrace
