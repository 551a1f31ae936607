#pragma once

// Aligns two recordings of the same sequence: here the names of the ops of a thread, recorded by
// two profilers. One recording may be longer (more steps before and after), and each may lack
// elements.
//
// The short pieces that both sequences share vote for the offset between them. From one shared
// piece at the winning offset the match grows to both sides along a shortest edit script (Myers, An
// O(ND) Difference Algorithm, 1986), a few hundred edits at a time, so that memory is bounded and
// time is linear even for sequences that have nothing in common.

#include <cstdint>
#include <vector>

namespace foretrace {

/// For each element of `a`, the place of its match in `b`, or kNone. Places increase.
std::vector<std::uint32_t> align_sequences(const std::vector<std::uint32_t>& a,
                                           const std::vector<std::uint32_t>& b);

}  // namespace foretrace
