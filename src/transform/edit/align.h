#pragma once

// Aligns two sequences: pairs runs of their elements by a shortest list of insertions and deletions
// that turns one sequence into the other (base/align.h).
//
//     a  b  x  d          a = a, b = b, [x] stands where [y z] does, d = d
//     a  b  y  z  d

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace foretrace {

/// Elements [begin, end) of the own sequence correspond to [other_begin, other_end) of the other
/// one. If `equal`, both runs have the same length and match element by element.
struct AlignedRun {
  std::size_t begin = 0, end = 0, other_begin = 0, other_end = 0;
  bool equal = false;
};

/// Returns the runs in order; together they cover both sequences. Time and memory grow with the
/// square of the number of differences: with more than `most` differences, a single unequal run
/// covers both sequences.
std::vector<AlignedRun> aligned_runs(std::span<const std::uint64_t> own,
                                     std::span<const std::uint64_t> other, std::size_t most = 2000);

}  // namespace foretrace
