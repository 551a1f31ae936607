#pragma once

// Rows of cells as aligned text or as markdown. The first column is left-aligned, the others right
// unless specified; where lines get too long for a terminal, a left-aligned last column wraps
// within its column. Cells are plain text: both forms show it literally and on one line.

#include <iosfwd>
#include <string>
#include <vector>

namespace foretrace {

struct Table {
  std::vector<std::string> heading;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> left = {0};  ///< Columns that are left-aligned.
  std::vector<std::size_t> code = {};   ///< Columns that markdown shows as code.
};

/// Each line begins with `indent`, and none ends in spaces. An empty heading is left out.
void write_aligned(const Table& table, std::ostream& out, const std::string& indent = "");
void write_markdown_table(const Table& table, std::ostream& out);

}  // namespace foretrace
