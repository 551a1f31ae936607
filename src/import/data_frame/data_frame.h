#pragma once

// Tables of pandas as BFTrainer publishes its log: a pickled DataFrame with times as its index and
// small whole numbers as its values, by itself or as the only file of an archive (.tar.gz). The
// pickle is read as data, and nothing is called.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

struct TimedTable {
  std::vector<std::string> columns{};
  std::vector<Nanoseconds> times{};  ///< Since 1970, one for each row.
  std::string values{};              ///< A byte for each value.
  bool is_by_row = false;            ///< The values of a row follow each other, not of a column.

  std::int8_t at(std::size_t row, std::size_t column) const {
    return static_cast<std::int8_t>(
        values[is_by_row ? row * columns.size() + column : column * times.size() + row]);
  }
};

/// Whether the file begins as one of these: a pickle, or an archive. Throws TraceError with the
/// path if it cannot be read.
bool may_be_timed_table(const std::string& path);

/// Reads at most 1 GiB, and needs twice that. Throws TraceError with the path if the file is
/// another pickle, wants to call anything, or is damaged.
TimedTable read_timed_table(const std::string& path);

}  // namespace foretrace
