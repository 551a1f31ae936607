#pragma once

// Tables as CSV: cells of a line, and rows that hold a text in a column.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretrace {

/// Cells of a line without its line break; a quote in quotes is doubled. Throws Error on a cell
/// that does not end.
std::vector<std::string> csv_cells(std::string_view line);

/// The place of a column. Throws Error with the nearest and all of them.
std::size_t column_of(std::span<const std::string> heading, const std::string& name);

/// Lets rows through all of whose columns hold their texts.
class CsvFilter {
 public:
  CsvFilter() = default;
  /// `only` has "COLUMN=TEXT". Throws Error on another form, or a column that is not there.
  CsvFilter(std::span<const std::string> heading, const std::vector<std::string>& only);
  bool passes(std::span<const std::string> cells) const;

 private:
  std::vector<std::pair<std::size_t, std::string>> texts_;  ///< By place.
};

}  // namespace foretrace
