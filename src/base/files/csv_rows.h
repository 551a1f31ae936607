#pragma once

// CSV tables: splits lines into cells, and selects rows by text in a column.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretrace {

/// Splits a line, given without its line break, into cells; a quote inside quotes is doubled.
/// Throws Error if a quoted cell is not closed.
std::vector<std::string> csv_cells(std::string_view line);

/// Index of a column. Throws Error with the nearest name and all columns if there is none.
std::size_t column_of(std::span<const std::string> heading, const std::string& name);

/// Selects rows in which each given column contains its text.
class CsvFilter {
 public:
  CsvFilter() = default;
  /// `only` lists "COLUMN=TEXT". Throws Error on another form, or an unknown column.
  CsvFilter(std::span<const std::string> heading, const std::vector<std::string>& only);
  bool passes(std::span<const std::string> cells) const;

 private:
  std::vector<std::pair<std::size_t, std::string>> texts_;  ///< Column index and text.
};

}  // namespace foretrace
