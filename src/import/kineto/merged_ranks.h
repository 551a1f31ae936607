#pragma once

// Tools that merge the traces of several ranks into one file put a mark in front of the number of
// each process and device, because ranks share these: "[TP00] 83" and "[TP01] 83", "[TP00] 0".

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "import/files/source.h"

namespace foretrace {

/// The rank to read of a merged file, and its mark. An empty mark stands for the whole file.
struct MergedRank {
  std::string mark;
  std::int32_t rank = 0;
  std::int32_t world_size = 1;
};

/// The mark of a process or device, "[TP00] " for "[TP00] 83"; empty if it has none. A mark
/// contains a number, so that "stream 7" has none.
std::string_view rank_mark(std::string_view process);

/// Whether the beginning of a file has marks. Files without need not be read for them.
bool has_rank_marks(std::string_view head);

/// The marks in a text of JSON, in the order of ranks. Takes linear time and bounded memory.
std::vector<std::string> rank_marks(Source& bytes);

}  // namespace foretrace
