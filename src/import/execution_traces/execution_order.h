#pragma once

// The order of ops in a trace without times.

#include <cstdint>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// at::RecordScope::USER_SCOPE: what a program named, not an op.
inline constexpr std::int64_t kUserScope = 7;

/// Of an op. Ids count upwards as ops begin, over all threads; a parent is the op that called it,
/// or an id that no op has.
struct NodeIds {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;
};

/// Sorts the host records, with those that refer to them, into the order in which they began. As
/// times they get the positions at which they begin and end, so that what is called inside an op
/// lies inside it:
///
///     zeros       |0.......................5|
///       empty       |1...2|
///       zero_                 |3...4|
///
/// `nodes` has one entry for each host record. O(n log n).
void set_positions(Trace& trace, const std::vector<NodeIds>& nodes);

}  // namespace foretrace
