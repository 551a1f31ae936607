#pragma once

// Aligns two sequences that record the same thing: here the names of the ops of a thread, as two
// observers wrote them down. One may have seen more (other steps before and after), and each may
// lack some.
//
// The many short pieces that both have in common vote for how far apart they are; that finds the
// place. From one piece there the match grows to both sides along a shortest edit script (Myers, An
// O(ND) Difference Algorithm, 1986), a few hundred edits at a time, so that memory is bounded and
// time is linear for sequences that have nothing in common.

#include <cstdint>
#include <vector>

namespace foretrace {

/// For each element of `a` its place in `b`, in increasing order, or kNone.
std::vector<std::uint32_t> align_sequences(const std::vector<std::uint32_t>& a,
                                           const std::vector<std::uint32_t>& b);

}  // namespace foretrace
