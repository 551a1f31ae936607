#pragma once

// Runs of elements of two sequences that belong together, by a shortest list of insertions and
// deletions that makes one of the other (base/align.h).
//
//     a  b  x  d          a = a, b = b, [x] stands where [y z] does, d = d
//     a  b  y  z  d

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace foretrace {

/// Own elements from `begin` to `end` stand where others stand from `other_begin` to `other_end`.
/// Equal ones are as many on either side, element by element.
struct AlignedRun {
  std::size_t begin = 0, end = 0, other_begin = 0, other_end = 0;
  bool equal = false;
};

/// In order, covering both sequences. Time and memory grow with the square of the differences: with
/// more than `most` of them, all of both sequences is one run that is not equal.
std::vector<AlignedRun> aligned_runs(std::span<const std::uint64_t> own,
                                     std::span<const std::uint64_t> other, std::size_t most = 2000);

}  // namespace foretrace
