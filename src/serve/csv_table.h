#pragma once

// Rows of a CSV file with a heading, read by the names of columns.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace foretrace::serve {

class CsvRow {
 public:
  CsvRow(const std::vector<std::string>& heading, std::vector<std::string> cells);

  /// Each throws Error with the nearest name if there is no such column.
  const std::string& cell(const std::string& name) const;
  /// Throws Error unless it is from `least` to `most`.
  double number(const std::string& name, double least, double most) const;
  std::int64_t whole(const std::string& name, std::int64_t most) const;  ///< From 1.

 private:
  const std::vector<std::string>& heading_;
  std::vector<std::string> cells_;
};

/// Calls `visit` for each row. Throws Error, with the path and the line, if the file cannot be
/// read, a row has another number of cells than the heading, or `visit` throws.
void each_csv_row(const std::string& path, const std::function<void(const CsvRow&)>& visit);

}  // namespace foretrace::serve
