#pragma once

// The ranks' records of the collectives of one operation, group and size: a row of the table.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foretrace/answer/collective.h"

namespace foretrace {

struct RecordedTimes {
  std::uint32_t ranks = 0, nodes = 1;
  std::size_t count = 0;
  std::vector<Nanoseconds> kernels, skews, transfers;
  std::map<std::int64_t, std::size_t> last;  ///< How often each rank entered last.

  /// The row without a price.
  RecordedCollectives row(const std::string& operation, const std::string& group,
                          Bytes bytes) const;
};

/// Rows with most time in kernels come first.
void sort_rows(std::vector<RecordedCollectives>& rows);

}  // namespace foretrace
