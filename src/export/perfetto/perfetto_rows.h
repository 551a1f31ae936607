#pragma once

// Perfetto draws a track as a stack: a slice must end before the slices around it. Slices that
// overlap in another way go to further rows of the same track:
//
//     recorded    |--a--|           row 0   |--a--|  |c|
//                    |--b--|        row 1      |--b--|
//                          |c|

#include <cstdint>
#include <vector>

namespace foretrace {

struct Slice {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t record = 0;
  std::uint32_t row = 0;
  std::uint8_t depth = 0;  ///< Of two slices with the same times, the inner one is deeper.
};

/// Sorts the slices of a track, outer ones first, and assigns a row to each. Unless `nests`, no two
/// slices of a row overlap at all. Returns the number of rows.
std::uint32_t assign_rows(std::vector<Slice>& slices, bool nests);

}  // namespace foretrace
