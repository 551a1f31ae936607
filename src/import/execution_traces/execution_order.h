#pragma once

// The order of ops in a trace without times.

#include <cstdint>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// at::RecordScope::USER_SCOPE: a range that the program named, not an op.
inline constexpr std::int64_t kUserScope = 7;

/// Ids of an op. They count upwards as ops begin, over all threads; a parent is the op that called
/// it, or an id that no op has.
struct NodeIds {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
};

/// Sorts the host records, with those that refer to them, into the order in which they began. Their
/// times become the positions at which they begin and end, so that calls inside an op lie inside
/// it:
///
///     zeros       |0.......................5|
///       empty       |1...2|
///       zero_                 |3...4|
///
/// `nodes` has one entry for each host record. O(n log n).
void set_positions(Trace& trace, const std::vector<NodeIds>& nodes);

}  // namespace foretrace
