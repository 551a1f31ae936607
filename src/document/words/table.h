#pragma once

// Writes rows of cells as aligned text or as Markdown. The first column is left-aligned and the
// others right-aligned, unless `left` says otherwise. If lines get too long for a terminal, a
// left-aligned last column wraps within its column. Cells are plain text, which both formats show
// literally; Markdown keeps each on one line.

#include <iosfwd>
#include <string>
#include <vector>

namespace foretrace {

struct Table {
  std::vector<std::string> heading;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> left = {0};  ///< Columns that are left-aligned.
  std::vector<std::size_t> code = {};   ///< Columns that Markdown shows as code.
};

/// Writes aligned text. Each line begins with `indent`, and none ends in spaces. An empty heading
/// is left out.
void write_aligned(const Table& table, std::ostream& out, const std::string& indent = "");
void write_markdown_table(const Table& table, std::ostream& out);

}  // namespace foretrace
